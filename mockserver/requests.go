package mockserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
)

// Requests is the journal of the latest requests and responses. It is masked:
// no key, no session or card token, no document number.
type Requests struct {
	journal *journal.Journal
	account gateway.Secret // its key; empty for every account
}

// Request is a request and its response, masked.
type Request struct {
	ID             uint64    // counts the server's requests, from 1
	At             time.Time // on the virtual clock
	Operation      string    // "transactions.create"; "" if the interface has none
	Method         string
	Path           string
	Query          string
	Header         http.Header
	Body           string
	Status         int // of the response; 0 if none was sent
	ResponseHeader http.Header
	Response       string
	Duration       time.Duration // wall time
	Fault          string        // the injected fault; "" for none
	Broken         bool          // the connection broke before the end of the response
}

// All lists the recorded requests, the oldest first.
func (r Requests) All() []Request { return r.Find("") }

// Find lists the requests that match a pattern, the oldest first: an
// operation's name ("transactions.create", "transactions.*") or an optional
// method and a path ("POST /v2/transactions", "/v2/transactions/{id}"). ""
// matches all.
func (r Requests) Find(pattern string) []Request {
	return requestsOf(r.journal.Find(r.account.Reveal(), pattern))
}

// Count counts the requests that match a pattern; see [Requests.Find].
func (r Requests) Count(pattern string) int { return len(r.journal.Find(r.account.Reveal(), pattern)) }

// NearMisses lists the requests that almost match a pattern, the nearest
// first, to explain why a test found none.
func (r Requests) NearMisses(pattern string) []Request {
	return requestsOf(r.journal.NearMisses(r.account.Reveal(), pattern))
}

// Wait waits until n requests that match a pattern have their responses, including earlier
// ones in the journal, and returns them, the oldest first. If ctx ends first, it
// returns those that have been, with the context's error and the near misses in the text.
// See [Requests.Find] for patterns.
func (r Requests) Wait(ctx context.Context, pattern string, n int) ([]Request, error) {
	entries, err := r.journal.Wait(ctx, r.account.Reveal(), pattern, n)
	found := requestsOf(entries)
	if err != nil {
		err = fmt.Errorf("mockserver: %s: %w", r.journal.Missing(r.account.Reveal(), pattern, n, len(found)), err)
	}
	return found, err
}

// InFlight lists the requests that match a pattern and are being executed, the oldest
// first, such as one that waits in a [Fault]. They have no ID, Body, Status or Response
// yet, and Duration is how long they have taken so far.
func (r Requests) InFlight(pattern string) []Request {
	return requestsOf(r.journal.InFlight(r.account.Reveal(), pattern))
}

// Clear deletes the recorded requests.
func (r Requests) Clear() { r.journal.Clear(r.account.Reveal()) }

func requestsOf(entries []journal.Entry) []Request {
	var list []Request
	for _, e := range entries {
		list = append(list, Request(e))
	}
	return list
}
