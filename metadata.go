package gateway

import "encoding/json"

// Metadata is a transaction's metadata as the gateway answers it: the text
// that was sent, or, from the live gateway, an object made of it. It is
// nullable; the zero Metadata is null.
type Metadata struct{ raw string }

// MetadataText returns the Metadata that holds a text.
func MetadataText(s string) Metadata {
	raw, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return Metadata{}
	}
	return Metadata{raw: string(raw)}
}

// IsZero reports whether there is no metadata.
func (m Metadata) IsZero() bool { return m.raw == "" || m.raw == "null" }

// Text returns the text that was sent; for an object, its JSON.
func (m Metadata) Text() string {
	var s string
	if m.IsZero() {
		return ""
	}
	if json.Unmarshal([]byte(m.raw), &s) != nil {
		return m.raw
	}
	return s
}

// String returns what Text does.
func (m Metadata) String() string { return m.Text() }

// Decode stores the metadata's JSON in v, whether it came as an object or as a
// text that holds JSON.
func (m Metadata) Decode(v any) error { return json.Unmarshal([]byte(m.Text()), v) }

// MarshalJSON writes what was decoded.
func (m Metadata) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("null"), nil
	}
	return []byte(m.raw), nil
}

// UnmarshalJSON keeps any JSON value.
func (m *Metadata) UnmarshalJSON(b []byte) error {
	m.raw = string(b)
	return nil
}
