//go:build js && wasm

// Command mockgateway-wasm is the mock gateway for JavaScript, without a process or a
// socket. npm/wasm loads it:
//
//	go run ./internal/release wasm FOLDER
package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"syscall/js"

	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver/internal/inpage"
)

// ready is the global function of npm/wasm/index.js that gets the exports.
const ready = "mockgatewayReady"

func main() {
	debug.SetGCPercent(200) // there is one thread, and a collection stops the page
	js.Global().Call(ready, version.Of("mockgateway-wasm"), js.FuncOf(open))
	select {} // the exports are called until the page is gone
}

// open starts a gateway: open(options, deliver) returns its exports, or the reason why it
// didn't start as a string. deliver(id, method, url, headers, body) gets the webhooks.
func open(_ js.Value, args []js.Value) any {
	gateway, err := inpage.New(args[0].String())
	if err != nil {
		return err.Error()
	}
	e := &exports{gateway: gateway, deliver: args[1], running: map[int]context.CancelFunc{}, waiting: map[int]chan response{}}
	object := map[string]any{"apiKey": gateway.Key(), "secret": gateway.Secret()}
	for name, f := range map[string]func([]js.Value) any{
		"fetch": e.fetch, "cancel": e.cancel, "receive": e.receive, "delivered": e.delivered,
		"snapshot": e.snapshot, "restore": e.restore, "close": e.close,
	} {
		exported := js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
		e.functions = append(e.functions, exported)
		object[name] = exported
	}
	return object
}

// exports are the functions that JavaScript calls. None may block: they would wait for a
// page that waits for them.
type exports struct {
	gateway   *inpage.Gateway
	deliver   js.Value
	functions []js.Func

	mu      sync.Mutex
	running map[int]context.CancelFunc // requests, by the id that the caller has chosen
	waiting map[int]chan response      // webhooks without a response yet
	last    int                        // id of a webhook
}

// response is the response to a webhook.
type response struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// fetch(id, method, url, headers, body, follow, sink) makes a request. Of sink it calls
// respond(status, headers, body, cut, url, redirected), or fail(reason).
func (e *exports) fetch(args []js.Value) any {
	id, sink := args[0].Int(), args[6]
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, args[1].String(), args[2].String(), body(args[4]))
	if err != nil {
		cancel()
		return err.Error()
	}
	r.Header = header(args[3])
	e.mu.Lock()
	e.running[id] = cancel
	e.mu.Unlock()
	follow := args[5].Bool()
	go func() {
		defer e.cancel(args[:1])
		resp, err := e.gateway.Fetch(r, follow)
		if err != nil {
			sink.Call("fail", err.Error())
			return
		}
		defer func() { _ = resp.Body.Close() }()
		content, err := io.ReadAll(resp.Body)
		to := resp.Request.URL.String()
		sink.Call("respond", resp.StatusCode, flat(resp.Header), array(content), err != nil, to, resp.Request != r)
	}()
	return nil
}

// cancel(id) ends a request.
func (e *exports) cancel(args []js.Value) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.running[args[0].Int()]; cancel != nil {
		cancel()
	}
	delete(e.running, args[0].Int())
	return nil
}

// receive(on) begins or ends the delivery of webhooks. It returns a reason if it fails.
func (e *exports) receive(args []js.Value) any {
	var receiver inpage.Receiver
	if args[0].Bool() {
		receiver = e.receiver
	}
	return reason(e.gateway.Receive(receiver))
}

// receiver passes a webhook to JavaScript and waits for delivered.
func (e *exports) receiver(ctx context.Context, r *http.Request, body []byte) (int, http.Header, []byte, error) {
	responded := make(chan response, 1)
	e.mu.Lock()
	e.last++
	id := e.last
	e.waiting[id] = responded
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, id)
	}()
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	e.deliver.Invoke(id, r.Method, scheme+r.Host+r.URL.RequestURI(), flat(r.Header), array(body))
	select {
	case got := <-responded:
		return got.status, got.header, got.body, got.err
	case <-ctx.Done():
		return 0, nil, nil, context.Cause(ctx)
	}
}

// delivered(id, error, status, headers, body) is the response to a webhook; error is null,
// or says why there is none.
func (e *exports) delivered(args []js.Value) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	responded := e.waiting[args[0].Int()]
	if responded == nil {
		return nil // too late
	}
	delete(e.waiting, args[0].Int())
	if !args[1].IsNull() {
		responded <- response{err: errors.New(args[1].String())}
		return nil
	}
	content, err := io.ReadAll(body(args[4]))
	responded <- response{status: args[2].Int(), header: header(args[3]), body: content, err: err}
	return nil
}

// snapshot(done) calls done(reason, text).
func (e *exports) snapshot(args []js.Value) any {
	go func() {
		file, err := e.gateway.Snapshot()
		args[0].Invoke(reason(err), string(file))
	}()
	return nil
}

// restore(text, done) calls done(reason).
func (e *exports) restore(args []js.Value) any {
	go func() { args[1].Invoke(reason(e.gateway.Restore([]byte(args[0].String())))) }()
	return nil
}

// close(done) calls done(reason). No function may be called afterwards.
func (e *exports) close(args []js.Value) any {
	go func() {
		err := e.gateway.Close()
		for _, f := range e.functions {
			f.Release()
		}
		args[0].Invoke(reason(err))
	}()
	return nil
}

// reason is null for no error.
func reason(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

// body reads a Uint8Array; null is no body.
func body(array js.Value) *bytes.Reader {
	if array.IsNull() {
		return bytes.NewReader(nil)
	}
	content := make([]byte, array.Length())
	js.CopyBytesToGo(content, array)
	return bytes.NewReader(content)
}

// array returns a Uint8Array.
func array(content []byte) js.Value {
	a := js.Global().Get("Uint8Array").New(len(content))
	js.CopyBytesToJS(a, content)
	return a
}

// header reads a flat list of names and values.
func header(list js.Value) http.Header {
	h := http.Header{}
	for i := 0; i+1 < list.Length(); i += 2 {
		h.Add(list.Index(i).String(), list.Index(i+1).String())
	}
	return h
}

// flat returns a header as a list of names and values.
func flat(h http.Header) []any {
	var list []any
	for name, values := range h {
		for _, value := range values {
			list = append(list, name, value)
		}
	}
	return list
}
