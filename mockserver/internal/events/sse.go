package events

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

const (
	// heartbeat is the interval at which a stream without events sends
	// keep-alive comments.
	heartbeat = 15 * time.Second
	// writeTime is how long a client may take to accept an event before it is
	// disconnected.
	writeTime = 10 * time.Second
)

// Stream writes events as server-sent events until the client disconnects or
// stops reading, the hub is closed, or the HTTP server shuts down. A shutdown would
// otherwise wait for the stream.
func (r *Reader) Stream(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(r.hub.servers.Of(req), cancel)() //nolint:contextcheck // the server's, not the request's
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering events
	s := stream{w: w, controller: http.NewResponseController(w)}
	_ = s.controller.SetReadDeadline(time.Time{}) // the server's time limit for requests does not apply to streams
	text := []byte("retry: 1000\n\n")
	for s.send(text) {
		e, found, alive := r.within(ctx, heartbeat)
		switch {
		case found:
			text = r.hub.frame(text[:0], &e)
		case alive:
			text = append(text[:0], ": heartbeat\n\n"...)
		default:
			return
		}
	}
}

// within is Next with a time limit. alive reports whether more events may come.
func (r *Reader) within(ctx context.Context, limit time.Duration) (e Event, found, alive bool) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e, found = r.Next(limited)
	return e, found, found || limited.Err() != nil && ctx.Err() == nil
}

// frame appends an event in the format of server-sent events.
func (h *Hub) frame(b []byte, e *Event) []byte {
	data, err := respond.Marshal(e)
	if err != nil { // can't happen: every event can be encoded
		return append(b, ": "+strconv.Quote(err.Error())+"\n\n"...)
	}
	b = append(b, "id: "+h.id(e.Seq)+"\nevent: "+e.Type+"\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}

type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// send writes and flushes a string. It reports false when the client is gone.
func (s stream) send(text []byte) bool {
	_ = s.controller.SetWriteDeadline(time.Now().Add(writeTime)) // a ResponseWriter without deadlines has no slow client
	_, err := s.w.Write(text)
	return err == nil && s.controller.Flush() == nil
}
