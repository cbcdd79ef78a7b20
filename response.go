package gateway

import "net/http"

// Response is what an answer says beside the resource. [ResponseInto] asks for
// it; it is filled for a failed call too, as far as there was an answer.
type Response struct {
	StatusCode int
	RequestID  string      // the gateway's trace id
	Header     http.Header // as it came
	Attempts   int         // how many requests were made

	// Reference is the external_ref or idempotency_key that was sent. Where the
	// params have none the client made it, once for all attempts of the call.
	Reference string

	// Recovered says that an earlier attempt of this call, whose answer was
	// lost, had made the resource, and that it was found again.
	Recovered bool

	// Existing says that the gateway answered a resource that was there before
	// this call, made with the same reference and equal to what was asked for.
	Existing bool
}
