package gate

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxDrain is how much of an unread body is read after the response, so that a
	// client that sends its whole body before it reads gets the response instead of
	// a connection reset.
	maxDrain = 8 << 20
	// drainTime is how long draining an unread body may take.
	drainTime = 5 * time.Second
)

// timed calls next with a time limit on the request body.
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

// body is a request body with a read deadline. The deadline is set at the first
// read and removed at the end of the body: handling the request has no time limit.
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
		if errors.Is(err, io.EOF) { // after other errors, the deadline stays so that net/http does not wait for the rest
			b.deadline(0)
		}
	}
	return n, err
}

// deadline sets how long reads may take from now on; 0 means no limit. It does nothing
// if the ResponseWriter does not support deadlines: such a writer, for example a
// recorder, has no slow client.
func (b *body) deadline(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = b.controller.SetReadDeadline(at)
}

// drain reads the rest of the body, unless the client still waits for
// "100 Continue": reading would ask it to send the body.
func (b *body) drain(r *http.Request) {
	waits := !b.begun && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	if b.ended || waits {
		return
	}
	b.begun = true
	b.deadline(min(b.limit, drainTime))
	_, _ = io.CopyN(io.Discard, b, maxDrain)
}
