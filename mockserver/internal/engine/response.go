package engine

import "time"

// ResponseLifetime is how long the response to an idempotency key is stored.
const ResponseLifetime = 24 * time.Hour

// Response is the stored response of a request that was sent with an
// Idempotency-Key header. Only the response of a request that succeeded is
// stored: a rejected one changed nothing and leaves its key unused.
type Response struct {
	Key         string
	Fingerprint string // of the method, the path and the body
	At          time.Time
	Status      int
	ContentType string
	ETag        string // "" is none
	Body        string
}

// Expired reports whether the key of r may be used for another request.
func (r *Response) Expired(now time.Time) bool { return !now.Before(r.At.Add(ResponseLifetime)) }

// Replay decides about a request with the key of stored, which may be nil: it
// returns the response to send again, nil if the request is new, or a refusal
// if the key belongs to another request.
func Replay(env Env, stored *Response, fingerprint string) (*Response, *Refusal) {
	switch {
	case stored == nil || stored.Expired(env.Now):
		return nil, nil
	case stored.Fingerprint != fingerprint:
		return nil, NewRefusal(CodeIdempotencyKeyReused,
			"This Idempotency-Key belongs to a request with another method, path or body: use a new key for a new request.")
	default:
		return stored, nil
	}
}
