package gateway

import (
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
)

// NewClientSecret returns the ClientSecret that holds text.
func NewClientSecret(text string) ClientSecret { return ClientSecret{hide(text)} }

// MetadataText returns the Metadata for the string s.
func MetadataText(s string) Metadata { return Metadata{raw: strconv.Quote(s)} }

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

// ListedItem and ReceivedCustomer are what a transaction's list item and a customer are decoded into.
type (
	ListedItem       = listedItem
	ReceivedCustomer = customerItem
	SandboxResponse  = sandboxResponse
)
