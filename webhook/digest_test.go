package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/webhook"
)

// Digests are stored. If an upgrade changed them, every redelivered event
// would be a conflict.
func TestDigestsOfStoredEventsDoNotChange(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"e","event":"transaction","data":{"id":"tx","event_type":"transaction.paid","amount":1990,"a":[1e3,1.50,"\u0041"]}}`: "7bbeb63dea1e30012b3e28b9d2309b3e",
		`{"data": {"a":[1000,1.5,"A"], "amount":1990.0,"event_type":"transaction.paid","id":"tx"},"id":"e2","event":"transaction"}`: "7bbeb63dea1e30012b3e28b9d2309b3e",
		`{"id":"e","event":"transaction","data":{"id":"tx","x":1,"x":2}}`:                                                           "c2932cf54b46afa8586ce88b7483871d",
		`{"id":"e","event":"transaction","data":{"id":"tx","x":2,"x":1}}`:                                                           "c2932cf54b46afa8586ce88b7483871d",
		"{\"id\":\"e\",\"event\":\"transaction\",\"data\":{\"id\":\"tx\",\"x\":\"\xe3\"}}":                                          "afbd987b6cd76c5a2cb22fe7e8d887d8",
		`{"id":"e","event":"transaction","data":{"id":"tx","x":"\ud800"}}`:                                                          "0217e7c858a7184481536c133fafb739",
		`{"id":"e","event":"transaction","data":{"\u0069d":"tx"}}`:                                                                  "63c07a0b9156f635f0ef53a0af5b49e0",
		`{"id":"e","event":"transaction","data":null}`:                                                                              "ec152b07397840e3021a9c285a955527",
		`{"id":"e","event":"transaction","more":1}`:                                                                                 "d86ed11c38dce8a36f023c8e73e669a2",
		`{"id":"e","new":{"x":1,"x":2},"event":"transaction","data":{"id":"tx"}}`:                                                   "3bffa8078bf0db18840877aad52a1cc3",
		`{"id":"e","data":"text"}`:             "93661821f7eeb902f38b1e8c3372bdaa",
		`{"id":"e","data":[9007199254740993]}`: "f67cea8a4658039b5ce552553b7a723c",
	} {
		assert.Equal(t, want, webhook.Digest([]byte(body)), body)
	}
}
