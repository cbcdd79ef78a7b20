package respond

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// problemTypes is the base of the type URIs of problem bodies; nothing is
// served there.
const problemTypes = "https://gateway.invalid/problems/"

// Problem is the shape of most errors.
type Problem struct {
	Type     string           `json:"type"`
	Title    string           `json:"title"`
	Status   int              `json:"status"`
	Detail   string           `json:"detail"`
	Instance string           `json:"instance"`
	Code     string           `json:"code"`
	Errors   []spec.Violation `json:"errors,omitempty"`
}

// NewProblem returns the problem of a request, with the type and title that
// belong to the status.
func NewProblem(r *http.Request, status int, code, detail string) Problem {
	title, kind := titleOf(status)
	return Problem{
		Type: problemTypes + kind, Title: title, Status: status, Detail: detail,
		Instance: r.URL.EscapedPath(), Code: code,
	}
}

// Allow returns the header that lists the methods of a path. Whatever serves GET serves
// HEAD too.
func Allow(methods []string) string {
	list := slices.Clone(methods)
	if slices.Contains(list, http.MethodGet) {
		list = append(list, http.MethodHead)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// Plain is the other shape of errors.
type Plain struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// titleOf returns the title of a status and the last element of its type URI.
func titleOf(status int) (title, kind string) {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "Validation Error", "validation-error"
	case http.StatusTooManyRequests:
		return "Too Many Requests", "rate-limited"
	}
	title = http.StatusText(status)
	if status >= http.StatusInternalServerError {
		return title, "internal"
	}
	return title, strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// The content types of responses.
const (
	JSON        = "application/json"
	ProblemJSON = "application/problem+json"
)

// bodies encodes the bodies of responses and webhooks.
var bodies = wire.Encoder{Options: json.Deterministic(true)}

// Marshal encodes a body; equal values have equal encodings.
func Marshal(v any) ([]byte, error) { return bodies.Encode(v) }

// Write sends a response with a JSON body of one of the two content types.
func Write(w http.ResponseWriter, status int, contentType string, body any) {
	buf, ok := buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	text, err := bodies.Append((*buf)[:0], body)
	if err != nil {
		// Every view can be encoded; if one can't, it must not look like a
		// success.
		status = http.StatusInternalServerError
		text = append((*buf)[:0], `{"title":"Internal Server Error","status":500}`...)
	}
	WriteText(w, status, contentType, text)
	if cap(text) <= 1<<20 { // don't keep the buffer of a rare long response
		*buf = text
		buffers.Put(buf)
	}
}

// WriteText is [Write] for an encoded body.
func WriteText(w http.ResponseWriter, status int, contentType string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails only if the client has left
}

// buffers are reused for encoding responses.
var buffers sync.Pool
