package engine

import "time"

// ResponseLifetime is how long the response to an idempotency key is stored.
const ResponseLifetime = 24 * time.Hour

// Response is the stored response of a request that was sent with an
// Idempotency-Key header. Only responses of requests that succeeded are stored: a
// rejected request changes nothing and leaves its key unused.
type Response struct {
	Key         string
	Fingerprint string // of the method, the path and the body
	At          time.Time
	Status      int
	ContentType string
	ETag        string // "" means none
	Body        string
}

// Expired reports whether the key of r may be used for another request.
func (r *Response) Expired(now time.Time) bool { return !now.Before(r.At.Add(ResponseLifetime)) }

// Replay decides how to respond to a request whose idempotency key is that of
// stored, which may be nil. It returns the response to send again, nil if the
// request is new, or a refusal if the key belongs to a different request.
func Replay(env Env, stored *Response, fingerprint string) (*Response, *Refusal) {
	switch {
	case stored == nil || stored.Expired(env.Now):
		return nil, nil
	case stored.Fingerprint != fingerprint:
		return nil, NewRefusal(CodeIdempotencyKeyReused,
			"This Idempotency-Key was used for a request with a different method, path or body: use a new key for a new request.")
	default:
		return stored, nil
	}
}
