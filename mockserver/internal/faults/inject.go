package faults

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// Header is the request header that injects a fault into its own request, in
// the form of [Parse].
const Header = "X-Mock-Fault"

// Injector is a handler that injects the faults of a Set into requests before
// it calls the next handler.
type Injector struct {
	Set       *Set
	Next      http.Handler
	Operation func(*http.Request) string // "transactions.create"
	Account   func(*http.Request) string // whose request it is; "" if unknown
}

func (in *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok, err := in.choose(r)
	switch {
	case err != nil:
		p := respond.NewProblem(r, http.StatusBadRequest, "INVALID_FAULT", Header+": "+err.Error())
		respond.Write(w, p.Status, respond.ProblemJSON, p)
	case !ok:
		in.Next.ServeHTTP(w, r)
	default:
		note(w, f)
		in.inject(w, r, f)
	}
}

// Noter is a response writer that is notified of the fault injected into its response.
type Noter interface{ NoteFault(text string) }

func note(w http.ResponseWriter, f Fault) {
	if n, ok := w.(Noter); ok {
		n.NoteFault(f.String())
	}
}

func (in *Injector) choose(r *http.Request) (Fault, bool, error) {
	if text := r.Header.Get(Header); text != "" {
		f, err := Parse(text)
		if err == nil && f.Kind.Webhook() {
			err = fmt.Errorf("fault %s: a request header can't inject faults into webhooks; use the control plane instead", f.Kind)
		}
		if err == nil && in.Set.Events.Listening() {
			in.Set.hitByHeader(in.Account(r), in.Operation(r), f)
		}
		return f, err == nil, err
	}
	if in.Set.armed.Load() == 0 {
		return Fault{}, false, nil
	}
	f, ok := in.Set.ForRequest(Request{
		Account:   in.Account(r),
		Operation: in.Operation(r),
		Method:    r.Method,
		Path:      r.URL.EscapedPath(),
	})
	return f, ok, nil
}

// inject carries out one fault.
func (in *Injector) inject(w http.ResponseWriter, r *http.Request, f Fault) {
	if !f.Applied {
		in.wait(r, f.Latency)
	}
	switch f.Kind {
	case Status, HTMLPage, Hang:
		in.replaceResponse(w, r, f)
	case ResetBefore:
		drain(r)
		memory.Reset(w)
	case StaleRead:
		in.Next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), staleKey{}, true)))
	case Lag:
		in.Next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), lagKey{}, f.Behind)))
	case Slow:
		in.Next.ServeHTTP(w, r)
	default:
		in.corrupt(w, r, f)
	}
}

// replaceResponse sends the fault's response instead of the gateway's. If the fault is
// applied, the gateway executes the request first.
func (in *Injector) replaceResponse(w http.ResponseWriter, r *http.Request, f Fault) {
	if f.Applied {
		in.Next.ServeHTTP(newRecording(w), r)
		in.wait(r, f.Latency)
	}
	drain(r)
	if f.Kind == Hang {
		in.hang(r)
	}
	f.write(w, r)
}

// corrupt passes the request to the gateway and changes the response.
func (in *Injector) corrupt(w http.ResponseWriter, r *http.Request, f Fault) {
	rec := newRecording(w)
	in.Next.ServeHTTP(rec, r)
	if f.Applied {
		in.wait(r, f.Latency)
	}
	switch f.Kind {
	case LoseResponse:
		if rec.changed {
			memory.Reset(w)
		}
		rec.send(rec.body.Bytes())
	case Truncate:
		rec.truncate()
	case EmptyBody:
		rec.send(nil)
	case BadJSON:
		rec.send(rec.body.Bytes()[:rec.body.Len()/2])
	case UnknownEnum:
		rec.send(unknownEnums(rec.body.Bytes()))
	case Shape:
		rec.send(Shaped(rec.body.Bytes(), f.Forms))
	case ExtraField:
		rec.send(extraFields(rec.body.Bytes()))
	default:
		rec.send(rec.body.Bytes())
	}
}

// drain reads the rest of the request, so that a client that is still sending gets the
// response, and the server notices when the client disconnects.
func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, 2<<20) }

type staleKey struct{}

// Stale reports whether a read returns the previous version.
func Stale(ctx context.Context) bool { return ctx.Value(staleKey{}) != nil }

type lagKey struct{}

// Behind returns how long ago the state was that a read shows; 0 is the current one.
func Behind(ctx context.Context) time.Duration {
	d, _ := ctx.Value(lagKey{}).(time.Duration)
	return d
}

// ChangeNoter is a response writer that is notified if the request changed
// something.
type ChangeNoter interface{ NoteChange() }

// recording buffers a response.
type recording struct {
	w       http.ResponseWriter
	header  http.Header
	status  int
	body    bytes.Buffer
	changed bool
}

func newRecording(w http.ResponseWriter) *recording {
	return &recording{w: w, header: make(http.Header), status: http.StatusOK}
}

func (r *recording) Header() http.Header { return r.header }

func (r *recording) WriteHeader(status int) { r.status = status }

func (r *recording) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recording) NoteChange() { r.changed = true }

// writeHead writes the status and the headers for a body of the given length.
func (r *recording) writeHead(length int) {
	h := r.w.Header()
	maps.Copy(h, r.header)
	h.Set("Content-Length", strconv.Itoa(length))
	r.w.WriteHeader(r.status)
}

func (r *recording) send(body []byte) {
	r.writeHead(len(body))
	_, _ = r.w.Write(body)
}

// truncate announces the full length of the response, sends half of it and
// closes the connection.
func (r *recording) truncate() {
	body := r.body.Bytes()
	r.writeHead(max(len(body), 1))
	_, _ = r.w.Write(body[:len(body)/2]) //nolint:gosec // as in send
	_ = http.NewResponseController(r.w).Flush()
	panic(http.ErrAbortHandler)
}

const page = `<!DOCTYPE html>
<html><head><title>%s</title></head>
<body><h1>%s</h1><p>This page was sent by a proxy in front of the gateway.</p></body></html>
`

// write writes the error of a Status or an HTMLPage.
func (f Fault) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if f.RetryAfter > 0 {
		h.Set("Retry-After", retryAfter(f.RetryAfter))
	}
	if id := r.Header.Get("X-Request-Id"); id != "" && f.Kind == Status {
		h.Set("X-Request-Id", id)
	}
	const detail = "The mock gateway has injected this error."
	code := cmp.Or(f.Code, DefaultCode)
	switch {
	case f.Kind == HTMLPage, f.Body == BodyHTML:
		text := strconv.Itoa(f.Status) + " " + http.StatusText(f.Status)
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, strings.ReplaceAll(page, "%s", text))
	case f.Body == BodyEmpty:
		h.Set("Content-Length", "0")
		w.WriteHeader(f.Status)
	case f.Body == BodyCoded:
		respond.Write(w, f.Status, respond.JSON, respond.Plain{Error: code, Message: detail, Status: f.Status})
	case f.Body == BodyTitled:
		p := respond.NewProblem(r, f.Status, "", detail)
		p.Title = code
		respond.Write(w, f.Status, respond.ProblemJSON, p)
	default:
		respond.Write(w, f.Status, respond.ProblemJSON, respond.NewProblem(r, f.Status, code, detail))
	}
}
