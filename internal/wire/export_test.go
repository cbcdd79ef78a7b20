package wire

import "github.com/go-json-experiment/json"

// The two readings, for tests that compare them.

func DecodeFast(body []byte, v any) bool { return decodeFast(body, v) }

func DecodeStrict(body []byte, v any) error { return json.Unmarshal(body, v, strict) }
