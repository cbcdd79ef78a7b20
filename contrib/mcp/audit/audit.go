// Package audit writes a line of JSON for each call that an agent makes: who, when, which
// tool, and what came of it. A line has no secrets, payees or texts of others.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Line is a line of the log.
type Line struct {
	At        time.Time      `json:"at"`
	Principal string         `json:"principal"`
	Client    string         `json:"client,omitempty"`
	Tool      string         `json:"tool"`            // or Reading
	Arguments string         `json:"arguments"`       // a digest: two calls with the same have the same
	Named     map[string]any `json:"named,omitempty"` // those arguments that have room for nothing but a name, an id or a number
	Asked     bool           `json:"asked,omitempty"` // a person was asked, and nothing was done yet

	Intent   string `json:"intent,omitempty"`
	State    string `json:"state,omitempty"`
	Sentinel string `json:"sentinel,omitempty"` // of the money plane: the kind of error

	Failed bool   `json:"failed,omitempty"` // nothing was done
	Code   string `json:"code,omitempty"`   // why, in one word
}

// Reading is the tool of a line about a resource that was read.
const Reading = "resources/read"

// The codes of calls that reach no tool.
const (
	InvalidArguments = "INVALID_ARGUMENTS"
	UnknownTool      = "UNKNOWN_TOOL"
	NotFound         = "NOT_FOUND"
	Internal         = "INTERNAL"
)

// Log is an audit log. A nil Log writes nothing.
type Log struct {
	now func() time.Time

	mu sync.Mutex
	w  io.Writer
}

// New returns a log that writes each line with one call of w, which may be nil. The writer
// handles its own errors: a call is not undone because it could not be logged.
func New(w io.Writer, now func() time.Time) *Log {
	if w == nil {
		return nil
	}
	return &Log{w: w, now: now}
}

// logged is the key of a flag in a context: a handler has written the line of the call.
type logged struct{}

// Call writes the line of a call. Handlers call it with what came of the call.
func (l *Log) Call(ctx context.Context, req *mcp.CallToolRequest, line Line) {
	if l == nil {
		return
	}
	if flag, ok := ctx.Value(logged{}).(*bool); ok {
		*flag = true
	}
	line.Tool = name(req.Params.Name)
	l.write(line, req.Params.Arguments, req.ClientInfo(), req.Extra)
}

// Middleware writes the lines of calls that no handler sees, such as those with an argument
// that the tool's schema does not have, and of resources that are read.
func (l *Log) Middleware(next mcp.MethodHandler) mcp.MethodHandler {
	if l == nil {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req := req.(type) {
		case *mcp.CallToolRequest:
			done := new(bool)
			res, err := next(context.WithValue(ctx, logged{}, done), method, req)
			if !*done {
				l.Call(ctx, req, Line{Failed: true, Code: codeOf(res, err)})
			}
			return res, err
		case *mcp.ReadResourceRequest:
			res, err := next(ctx, method, req)
			line := Line{Tool: Reading}
			if err != nil {
				line.Failed, line.Code = true, codeOf(nil, err)
				if line.Code == InvalidArguments {
					line.Code = NotFound // a URI is the only argument
				}
			}
			l.write(line, []byte(req.Params.URI), req.ClientInfo(), req.Extra)
			return res, err
		}
		return next(ctx, method, req)
	}
}

func codeOf(res mcp.Result, err error) string {
	if err == nil && res != nil {
		return InvalidArguments // the SDK rejected them
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok && strings.HasPrefix(e.Message, "unknown tool"):
		return UnknownTool
	case ok && e.Code == jsonrpc.CodeInvalidParams:
		return InvalidArguments
	}
	return Internal
}

func (l *Log) write(line Line, arguments []byte, client *mcp.Implementation, extra *mcp.RequestExtra) {
	sum := sha256.Sum256(arguments)
	line.At, line.Principal, line.Arguments = l.now().UTC(), Principal(extra), hex.EncodeToString(sum[:8])
	if client != nil {
		line.Client = text(client.Name + " " + client.Version)
	}
	written, err := json.Marshal(line)
	if err != nil {
		return // a Line always encodes
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(append(written, '\n'))
}

// local is the principal on standard input and output, where the process belongs to one user.
const local = "local"

// Principal says who makes a request: the holder of a bearer token, which the server has
// checked, anyone who can reach an HTTP server without one, or local.
func Principal(extra *mcp.RequestExtra) string {
	switch {
	case extra == nil:
		return local
	case extra.TokenInfo != nil:
		return "token:" + extra.TokenInfo.UserID
	case extra.Header != nil:
		return "http"
	}
	return local
}

const maxText = 80 // runes of what a client says about itself

// text returns the beginning of a client's text, without what a terminal would obey.
func text(s string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s))
	return strings.TrimSpace(string(runes[:min(len(runes), maxText)]))
}

// name returns the name of a tool. A model may invent one, and put anything into it.
func name(s string) string {
	if len(s) > maxText/2 || strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "?"
	}
	return s
}
