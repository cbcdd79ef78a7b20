package gate

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxDrain is how much of an unread body is read after the response, so
	// that a client that sends all of it first gets the response instead of a
	// reset connection.
	maxDrain = 8 << 20
	// drainTime is how long that may take.
	drainTime = 5 * time.Second
)

// timed calls next with a body that must arrive in time.
func (g *Gate) timed(next http.Handler, w http.ResponseWriter, r *http.Request) {
	limit := g.BodyTimeout
	if limit == 0 {
		limit = BodyTimeout
	}
	b := &body{ReadCloser: r.Body, controller: http.NewResponseController(w), limit: limit}
	r.Body = b
	defer func() { r.Body = b.ReadCloser }()
	next.ServeHTTP(w, r)
	b.drain(r)
}

// body is a request's body with a deadline, which starts with the first read
// and ends with the body: the rest of the request has no time limit.
type body struct {
	io.ReadCloser

	controller *http.ResponseController
	limit      time.Duration
	begun      bool
	ended      bool
}

func (b *body) Read(to []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.deadline(b.limit)
	}
	n, err := b.ReadCloser.Read(to)
	if err != nil && !b.ended {
		b.ended = true
		if errors.Is(err, io.EOF) { // otherwise net/http must not wait for the rest either
			b.deadline(0)
		}
	}
	return n, err
}

// deadline sets how long reads may take from now on; 0 is unlimited. A writer
// without deadlines has no slow client either.
func (b *body) deadline(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = b.controller.SetReadDeadline(at)
}

// drain reads a body's rest. A client that waits for "100 Continue" sends
// nothing, and gets none.
func (b *body) drain(r *http.Request) {
	waits := !b.begun && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	if b.ended || waits {
		return
	}
	b.begun = true
	b.deadline(min(b.limit, drainTime))
	_, _ = io.CopyN(io.Discard, b, maxDrain)
}
