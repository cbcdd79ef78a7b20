package gatewayprobe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/truncate"
)

// Report is the result of a run. It contains no key, document, Pix key, card
// number, token, name, e-mail address or phone number.
type Report struct {
	Gateway  string    `json:"gateway"`  // its base URL
	Started  time.Time `json:"started"`  // wall time
	Ended    time.Time `json:"ended"`    // wall time
	Requests int       `json:"requests"` // total sent
	Results  []Result  `json:"results"`  // in the order of docs/assumptions.md
}

// Verdict is the result of a run for a row.
type Verdict string

// The verdicts.
const (
	Agrees     Verdict = "agrees"
	Differs    Verdict = "differs"
	CannotTell Verdict = "can't tell"
)

// Result is a run's result for one row of docs/assumptions.md.
type Result struct {
	ID      string  `json:"id"`    // of the row
	Claim   string  `json:"claim"` // the row's text
	Verdict Verdict `json:"verdict"`

	// Reading is how the gateway behaves: "assumed" if the row is right, "document" or
	// "live" in a row where the dialects differ, or else a description.
	Reading string `json:"reading,omitzero"`

	// Expected is the reading that the gateway was compared with, if it differs.
	Expected string `json:"expected,omitzero"`

	// NotReproduced reports that the mock gateway has no setting for the reading, so
	// mockserver.WithProfile ignores it.
	NotReproduced bool `json:"not_reproduced,omitzero"`

	Why       string     `json:"why,omitzero"` // the reason why the probe can't tell
	Exchanges []Exchange `json:"exchanges,omitzero"`
}

// Exchange is a request and its response, masked.
type Exchange struct {
	Method   string `json:"method"`
	Path     string `json:"path"` // with the query
	Request  string `json:"request,omitzero"`
	Status   int    `json:"status,omitzero"`
	Response string `json:"response,omitzero"`
	Error    string `json:"error,omitzero"` // of the transport, if there is no response

	request, response []byte
	header            http.Header
}

// Count returns how many rows have a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, result := range r.Results {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// Summary returns the result in one line without its claim: the difference, or
// why the probe can't tell.
func (r Result) Summary() string {
	switch r.Verdict {
	case CannotTell:
		return r.Why
	case Differs:
		return fmt.Sprintf("%s (expected: %s)", r.Reading, r.Expected)
	default:
		return r.Reading
	}
}

// masked returns exchanges with masked values.
func (p *probe) masked(list []Exchange) []Exchange {
	for i := range list {
		x := &list[i]
		x.Path = p.query(x.Path)
		x.Request, x.Response, x.Error = p.body(x.request), p.body(x.response), p.hide(x.Error)
	}
	return list
}

// query masks the values of a query by their names.
func (p *probe) query(target string) string {
	path, query, found := strings.Cut(target, "?")
	if !found {
		return p.hide(target)
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); value != "" && (masking.Parameter(name) || personal(name)) {
			pairs[i] = name + "=" + masking.Masked
		}
	}
	return p.hide(path + "?" + strings.Join(pairs, "&"))
}

// body masks a body. Only JSON can be masked reliably, so other bodies are
// dropped.
func (p *probe) body(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	shown, err := masking.Rewrite(text, func(path []string, t jsontext.Token) jsontext.Token {
		if t.Kind() == '"' && slices.ContainsFunc(path, personal) {
			return jsontext.String(masking.Masked)
		}
		return masking.Token(path, t)
	})
	if err != nil {
		return fmt.Sprintf("(%d bytes that are not JSON)", len(text))
	}
	return p.hide(shown)
}

// line makes a string safe for a terminal: parts of it may come from the
// gateway.
func (p *probe) line(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, p.hide(text))
	return truncate.Ellipsis(text, maxLine)
}

// maxLine is the maximum length of a reading in bytes.
const maxLine = 300

// hide removes the API key and other keys, card numbers and documents from any text.
func (p *probe) hide(text string) string {
	text = strings.ReplaceAll(text, p.cfg.Key.Reveal(), masking.Masked)
	return p.identity.ReplaceAllString(masking.Text(text), masking.Masked)
}

// identity matches API keys, card tokens, phone numbers, CPF and CNPJ in text.
const identity = `\bpg(?:ct|pm)_\w+|\b\d{11,14}\b|\bsk_(?:live|test)_\w+|\b\d{3}\.\d{3}\.\d{3}-\d{2}\b|\b\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}\b`

// personal reports whether a member contains personal data. Lists return resources of
// the account that the probe did not create.
func personal(name string) bool {
	return slices.Contains([]string{
		"name", "email", "phone", "birth_date", "street", "city", "zipCode", "complement", "neighborhood", "neighboor", "ip_address", "customerEmail",
		"customer_email", "fullName", "mail", "qr_code", "qrcode", "pixCode", "notify_url", "pixQrCode", "digitable_line", "barcode", "metadata",
	}, name)
}
