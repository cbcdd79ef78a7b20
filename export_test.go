package gateway

import jsonv2 "github.com/go-json-experiment/json"

// WithJitter replaces the random part of the waits, so that they are
// predictable.
func WithJitter(jitter func() float64) Option {
	return func(s *settings) error {
		s.jitter = jitter
		return nil
	}
}

// EncodeRequest encodes params as the client does; EncodeRequestSlowly encodes them
// with the JSON package.
var EncodeRequest = encodeRequest

func EncodeRequestSlowly(v any) ([]byte, error) { return jsonv2.Marshal(v, requests.Options) }
