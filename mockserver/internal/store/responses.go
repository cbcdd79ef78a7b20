package store

import (
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// responses are the stored responses of an account, by idempotency key.
type responses struct {
	byKey map[string]*engine.Response
	order []*engine.Response // oldest first
}

func (r *responses) put(list []*engine.Response) {
	for _, response := range list {
		r.byKey[response.Key] = response
		r.order = append(r.order, response)
	}
}

// forget drops expired responses and returns how many bytes that frees.
func (r *responses) forget(now time.Time) (bytes int64) {
	for len(r.order) > 0 && r.order[0].Expired(now) {
		oldest := r.order[0]
		r.order = r.order[1:]
		if r.byKey[oldest.Key] == oldest { // a data file may contain a later response for the same key
			delete(r.byKey, oldest.Key)
		}
		bytes += memlimit.SizeOfResponse(oldest)
	}
	return bytes
}

func sizeOfResponses(list []*engine.Response) (bytes int64) {
	for _, r := range list {
		bytes += memlimit.SizeOfResponse(r)
	}
	return bytes
}

// Once runs do for a request with an idempotency key, or returns the response that
// is stored for the key, and true. It holds the account's lock, so only one of several
// concurrent requests with the same key is executed.
//
// do applies at most one transition, through the handle that it gets. The change and
// the response are committed together.
func (a *Account) Once(
	key, fingerprint string, do func(locked *Account) (*engine.Response, *engine.Refusal),
) (response *engine.Response, replayed bool, refusal *engine.Refusal) {
	a.mu.Lock()
	defer a.unlock()
	env := a.env()
	response, refusal = engine.Replay(env, a.data.responses.byKey[key], fingerprint)
	if response != nil || refusal != nil {
		return response, response != nil, refusal
	}
	a.data.Env = env
	var draft engine.Change
	response, refusal = do(&Account{core: a.core, changed: a.changed, cause: a.cause, draft: &draft})
	if refusal != nil {
		return nil, false, refusal
	}
	response.Key, response.Fingerprint, response.At = key, fingerprint, a.data.Env.Now
	draft.Responses = append(draft.Responses, response)
	return response, false, a.commit(draft, nil)
}
