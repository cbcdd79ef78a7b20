package wire

import "github.com/go-json-experiment/json"

// The two readings and the two writings, for tests that compare them.

func DecodeFast(body []byte, v any) bool { return decodeFast(body, v) }

func DecodeStrict(body []byte, v any) error { return json.Unmarshal(body, v, strict) }

func EncodeFast(v any) ([]byte, bool) { return appendFast(nil, v) }

func EncodeSlow(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }
