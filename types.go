package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-querystring/query"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// CardToken is a payment token created by the client-side payment element:
// "pgct_…" is single-use, "pgpm_…" reusable. It marshals unchanged and prints
// masked: although it is not a card number, it can be charged.
type CardToken string

// String returns the token's prefix and a mask.
func (t CardToken) String() string {
	if i := strings.IndexByte(string(t), '_'); i >= 0 && spec.HasTokenPrefix(string(t)) {
		return string(t[:i+1]) + "…"
	}
	if t == "" {
		return ""
	}
	return redacted
}

// Format writes the result of String for every verb.
func (t CardToken) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue returns the same as String.
func (t CardToken) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON writes the token, or in a log of log/slog the result of String.
func (t CardToken) MarshalJSON() ([]byte, error) { return marshalText(string(t), t) }

// Timestamp is a time as the gateway sent it. Decoding accepts RFC 3339, also in
// lower case, without seconds and with the zones -0300, -03 and UTC; a date and time
// without a zone (taken as UTC); a date; and Unix seconds, milliseconds, microseconds
// or nanoseconds. It never fails: anything else decodes to the zero time, and
// Unreadable reports it. Encoding writes the original text. null and "" decode to the
// zero Timestamp, which encodes as null.
type Timestamp struct {
	time.Time

	raw string // the original JSON, if the time would encode differently
}

// TimestampOf returns t as a Timestamp.
func TimestampOf(t time.Time) Timestamp { return Timestamp{Time: t} }

// Unreadable reports whether the gateway sent a time that can't be read, or that of the
// year 1. The time is then unknown: IsZero is true as well, but an absent time is not
// unreadable. [Timestamp.MarshalJSON] returns what was sent.
func (t Timestamp) Unreadable() bool { return t.raw != "" && t.Time.IsZero() }

const wireTime = "2006-01-02T15:04:05.000Z" // in UTC

// MarshalJSON writes the original text, or RFC 3339 with milliseconds in UTC,
// or null for the zero Timestamp.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	switch {
	case t.raw != "":
		return []byte(t.raw), nil
	case t.Time.IsZero():
		return []byte("null"), nil
	default:
		return t.appendWire(make([]byte, 0, len(wireTime)+2)), nil
	}
}

// UnmarshalJSON reads every format that [Timestamp] lists and never fails.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	*t = Timestamp{}
	if len(b) == 0 || string(b) == "null" || string(b) == `""` {
		return nil
	}
	err := t.Time.UnmarshalJSON(b)
	if err != nil {
		t.Time = parseTime(b)
	}
	// appendWire writes RFC 3339 in UTC with the given length.
	if canonical := err == nil && len(b) == len(wireTime)+2 && b[len(b)-2] == 'Z'; !canonical || t.Time.IsZero() {
		t.raw = string(b)
	}
	return nil
}

func (t Timestamp) appendWire(b []byte) []byte { return t.UTC().AppendFormat(b, `"`+wireTime+`"`) }

func parseTime(b []byte) time.Time {
	if b[0] != '"' {
		return unixTime(string(b))
	}
	var s string
	if len(b) >= 2 && !strings.ContainsRune(string(b), '\\') {
		s = string(b[1 : len(b)-1])
	} else if json.Unmarshal(b, &s) != nil {
		return time.Time{}
	}
	if at, ok := calendarTime(s); ok {
		return at
	}
	return unixTime(s)
}

// calendarTime reads a date, or a date and a time with or without a zone.
func calendarTime(s string) (time.Time, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	for _, name := range [...]string{"UTC", "GMT"} {
		if local, ok := strings.CutSuffix(s, name); ok {
			s = strings.TrimSpace(local) + "Z"
		}
	}
	if len(s) > len(time.DateOnly) && s[len(time.DateOnly)] == ' ' {
		s = s[:len(time.DateOnly)] + "T" + s[len(time.DateOnly)+1:]
	}
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at, true
	}
	for _, local := range [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		for _, zone := range [...]string{"Z07:00", "", "Z0700", "Z07", " Z07:00", " Z0700", " Z07"} {
			if at, err := time.Parse(local+zone, s); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// unixTime reads seconds, milliseconds, microseconds or nanoseconds, with or
// without a fraction. Their magnitudes differ for times from 1973 to 5138.
func unixTime(s string) time.Time {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		switch {
		case -1e11 <= n && n <= 1e11:
			return time.Unix(n, 0).UTC()
		case -1e14 <= n && n <= 1e14:
			return time.UnixMilli(n).UTC()
		case -1e17 <= n && n <= 1e17:
			return time.UnixMicro(n).UTC()
		default:
			return time.Unix(0, n).UTC()
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	switch size := math.Abs(f); {
	case err != nil, math.IsNaN(f), size >= 9e18:
		return time.Time{}
	case size <= 1e11:
		return time.UnixMicro(int64(f * 1e6)).UTC()
	case size <= 1e14:
		return time.UnixMicro(int64(f * 1e3)).UTC()
	case size <= 1e17:
		return time.UnixMicro(int64(f)).UTC()
	default:
		return time.Unix(0, int64(f)).UTC()
	}
}

// Currency is an ISO 4217 currency code, or GLC.
type Currency string

// The currencies of transactions. Subscriptions and checkout links also accept
// others, such as "EUR": pass the code.
const (
	ARS Currency = "ARS"
	BOB Currency = "BOB"
	BRL Currency = "BRL" // the default
	CLP Currency = "CLP"
	COP Currency = "COP"
	CRC Currency = "CRC"
	GTQ Currency = "GTQ"
	MXN Currency = "MXN"
	PYG Currency = "PYG"
	PEN Currency = "PEN"
	USD Currency = "USD"
	UYU Currency = "UYU"
)

// Country is an ISO 3166-1 code of a country that the gateway serves.
type Country string

// The countries of an address.
const (
	Argentina Country = "AR"
	Bolivia   Country = "BO"
	Brazil    Country = "BR" // the default
	Chile     Country = "CL"
	Colombia  Country = "CO"
	CostaRica Country = "CR"
	Ecuador   Country = "EC"
	Guatemala Country = "GT"
	Mexico    Country = "MX"
	Panama    Country = "PA"
	Paraguay  Country = "PY"
	Peru      Country = "PE"
	Uruguay   Country = "UY"
)

// DocumentType is the kind of a personal or company document.
type DocumentType string

// The document types. EIN, PASS, PEP, CEDULA and NIN are only for customers;
// the others are for buyers too.
const (
	DNI    DocumentType = "DNI"
	CUIT   DocumentType = "CUIT"
	CI     DocumentType = "CI"
	CE     DocumentType = "CE"
	NIT    DocumentType = "NIT"
	CPF    DocumentType = "CPF"
	CNPJ   DocumentType = "CNPJ"
	RUT    DocumentType = "RUT"
	RUN    DocumentType = "RUN"
	CC     DocumentType = "CC"
	CDI    DocumentType = "CDI"
	PP     DocumentType = "PP"
	RUC    DocumentType = "RUC"
	PAS    DocumentType = "PAS"
	DPI    DocumentType = "DPI"
	CUI    DocumentType = "CUI"
	RFC    DocumentType = "RFC"
	CURP   DocumentType = "CURP"
	EIN    DocumentType = "EIN"
	PASS   DocumentType = "PASS"
	PEP    DocumentType = "PEP"
	CEDULA DocumentType = "CEDULA"
	NIN    DocumentType = "NIN"
)

// Document identifies a person or a company. Type and Number are required. It
// prints with the number masked.
type Document struct {
	Type   DocumentType `json:"type"`
	Number string       `json:"number"`
}

// MarshalJSON writes d in the gateway's format, or in a log of log/slog the result of
// String.
func (d Document) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return json.Marshal(d.String())
	}
	type plain Document
	return wire.Marshal((*plain)(&d))
}

// String returns the type and a mask: a document number is personal data.
func (d Document) String() string { return string(d.Type) + " ***" }

// Format writes the result of String for every verb.
func (d Document) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns the same as String.
func (d Document) LogValue() slog.Value { return slog.StringValue(d.String()) }

// Address is a postal address. Street and City are required; Country is BR
// if omitted and is always present in responses.
type Address struct {
	Street       string  `json:"street,omitzero"`
	Number       string  `json:"number,omitzero"`
	Complement   string  `json:"complement,omitzero"` // nullable
	Neighborhood string  `json:"neighborhood,omitzero"`
	City         string  `json:"city,omitzero"`
	State        string  `json:"state,omitzero"` // 2 or 3 letters or digits
	ZipCode      string  `json:"zipCode,omitzero"`
	Country      Country `json:"country,omitzero"`
}

// MarshalJSON writes a in the gateway's format.
func (a Address) MarshalJSON() ([]byte, error) {
	type plain Address
	return wire.Marshal((*plain)(&a))
}

// requests encodes documents and addresses without the copies that their
// MarshalJSON methods make.
var requests = wire.Encoder{
	Options: jsonv2.JoinOptions(jsonv2.Deterministic(true), jsonv2.WithMarshalers(jsonv2.JoinMarshalers(
		jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, d *Document) error {
			type plain Document
			return jsonv2.MarshalEncode(enc, (*plain)(d))
		}),
		jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, a *Address) error {
			type plain Address
			return jsonv2.MarshalEncode(enc, (*plain)(a))
		}),
	))),
	Plain: []reflect.Type{
		reflect.TypeFor[Document](), reflect.TypeFor[Address](), reflect.TypeFor[BuyerParams](), reflect.TypeFor[CheckoutBuyer](),
		reflect.TypeFor[CustomerParams](), reflect.TypeFor[CardToken](), reflect.TypeFor[PixKey](),
	},
}

// encodeRequest returns the JSON of a request's params, or of a part of them.
func encodeRequest(v any) ([]byte, error) { return requests.Encode(v) }

// Product is one line of an order.
type Product struct {
	Name     string `json:"name"`              // 1 to 255 characters
	Price    int64  `json:"price"`             // unit price in cents, 0 to 100000000
	Quantity int    `json:"quantity,omitzero"` // 1 to 999999; default 1
	Tangible bool   `json:"tangible,omitzero"` // true for physical goods
	SKU      string `json:"sku,omitzero"`      // nullable, at most 255 characters
}

// minorDigits returns how many decimal digits the currency has (ISO 4217).
func minorDigits(c Currency) int {
	switch c {
	case "CLP", "PYG", "KRW", "JPY":
		return 0
	case "BHD", "KWD", "OMR":
		return 3
	default:
		return 2
	}
}

// FormatAmount formats an amount in the smallest unit for display, with the
// currency in front: FormatAmount(123450, BRL) is "BRL 1234.50" and
// FormatAmount(1990, CLP) is "CLP 1990". An empty currency is omitted.
func FormatAmount(amount int64, currency Currency) string {
	sign, magnitude := "", uint64(amount) //nolint:gosec // also correct for the smallest int64, which has no positive counterpart
	if amount < 0 {
		sign, magnitude = "-", -magnitude
	}
	digits := strconv.FormatUint(magnitude, 10)
	if minor := minorDigits(currency); minor > 0 {
		for len(digits) <= minor {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-minor] + "." + digits[len(digits)-minor:]
	}
	if currency == "" {
		return sign + digits
	}
	return string(currency) + " " + sign + digits
}

// Metadata is a resource's metadata as the gateway returns it. For a transaction
// it is the string that was sent or, from live gateways, an object made from it;
// for any other resource it is an object. It is nullable; the zero Metadata is
// null.
type Metadata struct{ raw string }

// IsZero reports whether there is no metadata.
func (m Metadata) IsZero() bool { return m.raw == "" || m.raw == "null" }

// Text returns the string that was sent; for an object, its JSON.
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

// String returns the same as Text.
func (m Metadata) String() string { return m.Text() }

// Decode decodes the metadata into v, whether it is an object or a string that
// contains JSON.
func (m Metadata) Decode(v any) error { return json.Unmarshal([]byte(m.Text()), v) }

// MarshalJSON writes the original JSON, in a log of log/slog with personal data
// masked.
func (m Metadata) MarshalJSON() ([]byte, error) {
	if masking.Logging() {
		return masking.Show(json.RawMessage(cmp.Or(m.raw, "null"))).MarshalJSON()
	}
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

// Opt is a request field with three distinct states: not sent, null, or a value,
// which may be a zero value. The zero Opt is not sent; use [Some] and [Clear]
// for the other two.
//
//	gateway.SubscriptionUpdateParams{Metadata: gateway.Clear[map[string]any]()} // clears it
type Opt[T any] struct {
	value T
	state optState
}

type optState uint8

const (
	optAbsent optState = iota
	optNull
	optSet
)

// Some returns an Opt that sends v, even if v is the zero value of its type.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, state: optSet} }

// Clear returns an Opt that sends null, which clears the field.
func Clear[T any]() Opt[T] { return Opt[T]{state: optNull} }

// Get returns the value, and whether there is one: false for an Opt that is
// absent or null.
func (o Opt[T]) Get() (T, bool) { return o.value, o.state == optSet }

// IsNull reports whether the field is sent as null.
func (o Opt[T]) IsNull() bool { return o.state == optNull }

// IsZero reports whether the field is not sent at all.
func (o Opt[T]) IsZero() bool { return o.state == optAbsent }

// String returns the value's text, "null", or "absent".
func (o Opt[T]) String() string {
	switch o.state {
	case optSet:
		return fmt.Sprint(o.value)
	case optNull:
		return "null"
	default:
		return "absent"
	}
}

// MarshalJSON writes the value or null. An absent Opt inside a struct needs
// the tag option omitzero, or it is written as null.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != optSet {
		return []byte("null"), nil
	}
	return jsonv2.Marshal(o.value, jsonv2.Deterministic(true))
}

// UnmarshalJSON reads a value or null. A field that is missing stays absent.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		*o = Clear[T]()
		return nil
	}
	var v T
	if err := jsonv2.Unmarshal(b, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

var _ query.Encoder = Opt[int]{}

// EncodeValues writes the value as a query parameter. Null is written as an empty
// parameter, and an absent Opt is not written.
func (o Opt[T]) EncodeValues(key string, v *url.Values) error {
	switch o.state {
	case optSet:
		v.Set(key, fmt.Sprint(o.value))
	case optNull:
		v.Set(key, "")
	case optAbsent:
	}
	return nil
}
