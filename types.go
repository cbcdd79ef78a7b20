package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/rules"
)

// Secret is a string that must never be printed: an API key, a session token,
// a webhook secret. Every verb of fmt, slog and JSON shows "[redacted]";
// [Secret.Reveal] gives the text.
//
// Package fmt calls no methods of a value in an unexported field, so that a
// Secret there prints as it is with its struct. Keep a *Secret in such a field,
// of which fmt prints the address, or give the struct a Format method.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret's text, for sending it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]" whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]": a secret that must travel is written by
// the code that sends it, with Reveal.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// CardToken is a payment token made by the client-side payment element:
// "pgct_…" for one use, "pgpm_…" reusable. It marshals as it is and prints
// masked: it is no card number, but it can be charged.
type CardToken string

// String returns the token's prefix and a mask.
func (t CardToken) String() string {
	if i := strings.IndexByte(string(t), '_'); i >= 0 && rules.HasTokenPrefix(string(t)) {
		return string(t[:i+1]) + "…"
	}
	if t == "" {
		return ""
	}
	return redacted
}

// GoString returns what String does, quoted.
func (t CardToken) GoString() string { return strconv.Quote(t.String()) }

// Format writes what String returns, whatever the verb.
func (t CardToken) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue returns what String does.
func (t CardToken) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ClientSecret hands a challenge to the client-side payment element. It marshals
// as it is, since it must reach the payer's browser, and prints "[redacted]"
// under every verb of fmt and in slog. string(s) is its text.
type ClientSecret string

// String returns "[redacted]", or "" where there is none.
func (s ClientSecret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString returns what String does.
func (s ClientSecret) GoString() string { return s.String() }

// Format writes what String returns, whatever the verb.
func (s ClientSecret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue returns what String does.
func (s ClientSecret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Timestamp is a moment as the gateway wrote it. Decoding accepts RFC 3339, a
// date and time without a zone (taken as UTC), a date, and Unix seconds or
// milliseconds, and never fails: a text that is none of these leaves the zero
// time and is kept, so that encoding gives back what came. null and "" are the
// zero Timestamp, which encodes as null.
type Timestamp struct {
	time.Time

	raw string // the JSON text, where it is not what the time would encode to
}

// TimestampOf returns t as a Timestamp.
func TimestampOf(t time.Time) Timestamp { return Timestamp{Time: t} }

const wireTime = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON writes what was decoded, or RFC 3339 with milliseconds in UTC,
// or null for the zero Timestamp.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	switch {
	case t.raw != "":
		return []byte(t.raw), nil
	case t.Time.IsZero():
		return []byte("null"), nil
	default:
		return t.UTC().AppendFormat(make([]byte, 0, len(wireTime)+2), `"`+wireTime+`"`), nil
	}
}

// UnmarshalJSON reads every form named at [Timestamp] and never fails.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	*t = Timestamp{}
	if len(b) == 0 || string(b) == "null" || string(b) == `""` {
		return nil
	}
	if at, ok := parseWireTime(b); ok {
		t.Time = at
		return nil
	}
	t.Time = parseTime(b)
	if canonical, _ := (Timestamp{Time: t.Time}).MarshalJSON(); string(canonical) != string(b) {
		t.raw = string(b)
	}
	return nil
}

// parseWireTime reads the form that the gateway writes, which is also the one
// that MarshalJSON writes: "2027-01-04T12:00:00.000Z" with its quotes. An
// answer has several, so it is read without a copy.
func parseWireTime(b []byte) (time.Time, bool) {
	const form = `"0000-00-00T00:00:00.000Z"`
	if len(b) != len(form) {
		return time.Time{}, false
	}
	for i := range len(form) {
		if digit := b[i] >= '0' && b[i] <= '9'; digit != (form[i] == '0') || !digit && b[i] != form[i] {
			return time.Time{}, false
		}
	}
	n := func(from, to int) (v int) {
		for _, c := range b[from:to] {
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day, hour, minute, second := n(1, 5), n(6, 8), n(9, 11), n(12, 14), n(15, 17), n(18, 20)
	at := time.Date(year, time.Month(month), day, hour, minute, second, n(21, 24)*int(time.Millisecond), time.UTC)
	// Date turns what is no date, such as 31 February, into another one.
	_, m, d := at.Date()
	return at, int(m) == month && d == day && hour < 24 && minute < 60 && second < 60
}

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
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at
	}
	for _, layout := range [...]string{"2006-01-02T15:04:05", time.DateTime, time.DateOnly, "2006-01-02 15:04:05Z07:00"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at
		}
	}
	return unixTime(s)
}

// unixTime reads seconds, with a fraction or not, or milliseconds: a number of
// seconds above 1e11 would lie beyond the year 5000.
func unixTime(s string) time.Time {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n > 1e11 || n < -1e11 {
			return time.UnixMilli(n).UTC()
		}
		return time.Unix(n, 0).UTC()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f > 1e11 || f < -1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(f * 1e6)).UTC()
}

// Currency is a currency code of ISO 4217 (and GLC).
type Currency string

// The currencies of transactions; subscriptions and checkout links take these
// and the further ones below.
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

// The further currencies of subscriptions and checkout links.
const (
	NIO Currency = "NIO"
	PHP Currency = "PHP"
	RUB Currency = "RUB"
	INR Currency = "INR"
	SAR Currency = "SAR"
	AED Currency = "AED"
	KWD Currency = "KWD"
	QAR Currency = "QAR"
	OMR Currency = "OMR"
	KHR Currency = "KHR"
	SGD Currency = "SGD"
	IDR Currency = "IDR"
	KRW Currency = "KRW"
	THB Currency = "THB"
	MYR Currency = "MYR"
	HKD Currency = "HKD"
	CNY Currency = "CNY"
	EGP Currency = "EGP"
	EUR Currency = "EUR"
	GBP Currency = "GBP"
	BHD Currency = "BHD"
	MAD Currency = "MAD"
	AUD Currency = "AUD"
	CAD Currency = "CAD"
	CHF Currency = "CHF"
	NZD Currency = "NZD"
	PLN Currency = "PLN"
	KZT Currency = "KZT"
	UZS Currency = "UZS"
	JPY Currency = "JPY"
	GLC Currency = "GLC"
)

// Known reports whether the interface names c, for transactions or for
// subscriptions and checkout links.
func (c Currency) Known() bool {
	return rules.Currencies.Has(string(c)) || rules.BillingCurrencies.Has(string(c))
}

// Country is a country code of ISO 3166-1, of the countries the gateway serves.
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

// Known reports whether the interface names c.
func (c Country) Known() bool { return rules.Countries.Has(string(c)) }

// DocumentType is the kind of a personal or company document.
type DocumentType string

// The document types of a buyer. EIN, PASS, PEP, CEDULA and NIN exist on
// customers only.
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

// Known reports whether a buyer or a customer may have a document of type t.
func (t DocumentType) Known() bool { return rules.CustomerDocumentTypes.Has(string(t)) }

// Document identifies a person or a company. Both members are required where
// a document is given. It prints without its number.
type Document struct {
	Type   DocumentType `json:"type"`
	Number string       `json:"number"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// String returns the type and a mask: a document number is personal data.
func (d Document) String() string { return string(d.Type) + " ***" }

// GoString returns what String does.
func (d Document) GoString() string { return d.String() }

// Format writes what String returns, whatever the verb.
func (d Document) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns what String does.
func (d Document) LogValue() slog.Value { return slog.StringValue(d.String()) }

// Address is a postal address. Street and City are required; Country is BR
// where it is not sent and is always present in answers.
type Address struct {
	Street       string  `json:"street,omitzero"`
	Number       string  `json:"number,omitzero"`
	Complement   string  `json:"complement,omitzero"` // nullable
	Neighborhood string  `json:"neighborhood,omitzero"`
	City         string  `json:"city,omitzero"`
	State        string  `json:"state,omitzero"` // 2 or 3 letters or digits
	ZipCode      string  `json:"zipCode,omitzero"`
	Country      Country `json:"country,omitzero"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`
}

// Product is one position of what is sold.
type Product struct {
	Name     string `json:"name"`              // 1 to 255 characters
	Price    int64  `json:"price"`             // unit price in cents, 0 to 100000000
	Quantity int    `json:"quantity,omitzero"` // 1 to 999999; 1 where it is not sent
	Tangible bool   `json:"tangible,omitzero"` // true for a physical good
	SKU      string `json:"sku,omitzero"`      // nullable, at most 255 characters
}
