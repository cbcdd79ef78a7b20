package webhook_test

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// The delivery as the gateway sent it.
const sentBody = `{"id":"evt_7","event":"transaction","api_version":"2.0.0","data":{"id":"tx_7","event_type":"transaction.paid",` +
	`"correlation_id":"order/7","method":"pix","status":"paid","amount":1990,"currency":"BRL","paid_at":"2023-11-14T22:13:20.000Z",` +
	`"customer":{"name":"João <Souza>","email":"joao@shop.test","phone":null},` +
	`"products":[{"title":"Café","unit_price":1990,"quantity":1}]}}`

const diagnosedKey = "whsec_4f3c2b1a09"

type patient struct {
	header http.Header
	body   string
	keys   []webhook.SigningKey
	now    time.Time
	names  webhook.HeaderNames
	others [][]byte
}

func (p *patient) sign(key, timestamp, body string) {
	p.header = headers(timestamp, webhook.SignText(gateway.NewSecret(key), timestamp, []byte(body)))
}

func (p *patient) key(text string) {
	p.keys = []webhook.SigningKey{{Key: gateway.NewSecret(text)}}
}

func (p *patient) rename(from, to string) {
	p.header[to] = p.header[from]
	delete(p.header, from)
}

func (p *patient) verifier() *webhook.Verifier {
	return &webhook.Verifier{Keys: p.keys, Headers: p.names, Now: func() time.Time { return p.now }}
}

// patientWith returns a valid delivery with a change applied to it.
func patientWith(change func(p *patient)) *patient {
	p := &patient{body: sentBody, now: time.Unix(vectorTime, 0)}
	p.key(diagnosedKey)
	p.sign(diagnosedKey, strconv.Itoa(vectorTime), sentBody)
	change(p)
	return p
}

func (p *patient) diagnose() webhook.Diagnosis {
	return p.verifier().Diagnose(webhook.Delivery{Header: p.header, Body: []byte(p.body)}, p.others...)
}

func remarshaled(indent string) func(p *patient) {
	return func(p *patient) {
		var v any
		if err := json.Unmarshal([]byte(p.body), &v); err != nil {
			panic(err)
		}
		b, err := json.MarshalIndent(v, "", indent)
		if err != nil {
			panic(err)
		}
		p.body = string(b)
		if indent == "" {
			var compact bytes.Buffer
			if err := json.Compact(&compact, b); err != nil {
				panic(err)
			}
			p.body = compact.String()
		}
	}
}

func utf16le(text string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func latin1(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

func mojibake(text string) string {
	var b []rune
	for _, c := range []byte(text) {
		b = append(b, rune(c))
	}
	return string(b)
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func python(text string) string {
	text = strings.NewReplacer("ã", `\u00e3`, "é", `\u00e9`).Replace(text)
	return strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(text)
}

type diagnosisCase struct {
	change func(p *patient)
	cause  string
	says   string // in the text
	proven bool
}

func diagnosisCases() map[string]diagnosisCase {
	body := func(change func(string) string) func(p *patient) {
		return func(p *patient) { p.body = change(p.body) }
	}
	key := func(text string) func(p *patient) { return func(p *patient) { p.key(text) } }
	signedWith := func(given, signing string) func(p *patient) {
		return func(p *patient) {
			p.key(given)
			p.sign(signing, strconv.Itoa(vectorTime), p.body)
		}
	}
	after := func(d time.Duration) func(p *patient) {
		return func(p *patient) { p.now = p.now.Add(d) }
	}
	other := strings.ReplaceAll(sentBody, "_7", "_8")
	return map[string]diagnosisCase{
		// Headers.
		"no headers":              {func(p *patient) { p.header = http.Header{} }, "missing_header", "X-Gateway-Signature is missing", false},
		"no signature":            {func(p *patient) { p.header.Del(webhook.DefaultSignatureHeader) }, "missing_header", "The request has X-Gateway-Timestamp", false},
		"no timestamp":            {func(p *patient) { p.header.Del(webhook.DefaultTimestampHeader) }, "missing_header", "X-Gateway-Timestamp is missing", false},
		"another operator":        {func(p *patient) { p.rename(webhook.DefaultSignatureHeader, "X-Op-Signature") }, "wrong_header", "X-Op-Signature", true},
		"another timestamp name":  {func(p *patient) { p.rename(webhook.DefaultTimestampHeader, "X-Op-Time") }, "wrong_header", "Headers.Timestamp of webhook.Config or webhook.Verifier to X-Op-Time", true},
		"names of CGI":            {func(p *patient) { p.rename(webhook.DefaultSignatureHeader, "HTTP_X_GATEWAY_SIGNATURE") }, "wrong_header", "CGI", true},
		"custom names configured": {func(p *patient) { p.names = webhook.HeaderNames{Signature: "X-Mine"} }, "wrong_header", "X-Mine is missing", true},
		"two timestamps":          {func(p *patient) { p.header.Add(webhook.DefaultTimestampHeader, "1700000001") }, "repeated_header", "2 different timestamps", true},
		"nine signatures": {func(p *patient) {
			for i := range 8 {
				p.header.Add(webhook.DefaultSignatureHeader, "sha256="+strings.Repeat(strconv.Itoa(i), 64))
			}
		}, "repeated_header", "more than 8", true},
		"empty signature":      {func(p *patient) { p.header.Set(webhook.DefaultSignatureHeader, "") }, "malformed_signature", "empty", false},
		"upper-case signature": {func(p *patient) { signatureAs(p, func(s string) string { return "sha256=" + strings.ToUpper(s) }) }, "malformed_signature", "lower case", true},
		"bare hex":             {func(p *patient) { signatureAs(p, func(s string) string { return s }) }, "malformed_signature", "begin with", true},
		"versioned":            {func(p *patient) { signatureAs(p, func(s string) string { return "v1=" + s }) }, "malformed_signature", "begin with", true},
		"base64 signature": {func(p *patient) {
			signatureAs(p, func(s string) string {
				b, _ := hex.DecodeString(s)
				return "sha256=" + base64.StdEncoding.EncodeToString(b)
			})
		}, "malformed_signature", "base64", true},
		"sha1":            {func(p *patient) { signatureAs(p, func(s string) string { return "sha256=" + s[:40] }) }, "malformed_signature", "SHA-1", false},
		"not a signature": {func(p *patient) { signatureAs(p, func(string) string { return "yes" }) }, "malformed_signature", "64 lower-case hex digits", false},

		// Timestamps.
		"too old":       {after(301 * time.Second), "timestamp_too_old", "5m1s behind", true},
		"days old":      {after(75 * time.Hour), "timestamp_too_old", "3 days behind", true},
		"in the future": {after(-10 * time.Minute), "timestamp_in_future", "10m0s ahead", true},
		"a time zone":   {after(3*time.Hour + 2*time.Second), "timestamp_too_old", "time zone", true},
		"signed milliseconds": {
			func(p *patient) { p.sign(diagnosedKey, "1700000000123", p.body) },
			"timestamp_milliseconds", "milliseconds", true,
		},
		"header in milliseconds": {
			func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, "1700000000000") },
			"timestamp_milliseconds", "13 digits", true,
		},
		"header in nanoseconds": {
			func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, "1700000000000000000") },
			"timestamp_milliseconds", "nanoseconds", true,
		},
		"a date": {
			func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, "2023-11-14T22:13:20Z") },
			"malformed_timestamp", "a date", true,
		},
		"empty timestamp": {func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, " ") }, "malformed_timestamp", "empty", false},
		"twelve digits": {
			func(p *patient) { p.sign(diagnosedKey, "170000000000", p.body) }, "timestamp_in_future", "ahead", true,
		},
		"a date with a comma": {
			func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, "Tue, 14 Nov 2023 22:13:20 GMT") },
			"malformed_timestamp", "a date", true,
		},
		"a word": {func(p *patient) { p.sign(diagnosedKey, "yesterday", p.body) }, "malformed_timestamp", "Unix seconds", true},
		"a later attempt's timestamp": {
			func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, "1700000005") },
			"other_timestamp", "timestamp 1700000000", true,
		},
		"body without timestamp": {func(p *patient) {
			p.header = headers("1700000000", "sha256="+hmacHex(diagnosedKey, p.body))
		}, "signed_content", "without the timestamp", true},
		"no dot": {func(p *patient) {
			p.header = headers("1700000000", "sha256="+hmacHex(diagnosedKey, "1700000000"+p.body))
		}, "signed_content", "without a dot", true},

		// Bodies.
		"read already": {body(func(string) string { return "" }), "empty_body", "body is empty", false},
		"Go's map":     {remarshaled(""), "reencoded_body", "Go's encoding/json of a map", true},
		"indented":     {remarshaled("\t"), "reencoded_body", "white space", true},
		"Python":       {body(python), "reencoded_body", "Python's json.dumps", true},
		"PHP": {body(func(s string) string {
			return strings.ReplaceAll(strings.NewReplacer("ã", `\u00e3`, "é", `\u00e9`).Replace(s), "/", `\/`)
		}), "reencoded_body", "PHP's json_encode", true},
		"Go's escapes":           {body(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace), "reencoded_body", "the escapes in strings", true},
		"floats":                 {body(func(s string) string { return strings.ReplaceAll(s, "1990", "1990.0") }), "reencoded_body", "numbers", true},
		"lost members":           {body(func(s string) string { return strings.Replace(s, `,"phone":null`, "", 1) }), "wrong_secret", "No given key", false},
		"lost members, indented": {func(p *patient) { remarshaled("  ")(p); p.body = strings.Replace(p.body, "null", "0", 1) }, "reencoded_body", "not the gateway's", false},
		"a line break added":     {body(func(s string) string { return s + "\n" }), "altered_body", "line break around", true},
		"trimmed": {
			func(p *patient) { p.sign(diagnosedKey, "1700000000", p.body+"\r\n") },
			"altered_body", "was trimmed", true,
		},
		"byte order mark":    {body(func(s string) string { return "\uFEFF" + s }), "altered_body", "byte order mark", true},
		"base64 body":        {body(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }), "altered_body", "base64", true},
		"compressed":         {body(gzipped), "altered_body", "compressed", true},
		"a string of JSON":   {body(strconv.Quote), "altered_body", "JSON string", true},
		"a function's event": {body(func(s string) string { return `{"headers":{},"body":` + strconv.Quote(s) + `}` }), "altered_body", "cloud function", true},
		"a form":             {body(func(s string) string { return "payload=" + url.QueryEscape(s) }), "altered_body", "form-encoded", true},
		"read as Latin-1":    {body(mojibake), "altered_body", "Latin-1 or Windows-1252", true},
		"written as Latin-1": {body(latin1), "altered_body", "written as Latin-1", true},
		"UTF-16":             {body(utf16le), "altered_body", "UTF-16", true},
		"LF for CRLF": {
			func(p *patient) {
				p.sign(diagnosedKey, "1700000000", strings.ReplaceAll(p.body, ",", ",\r\n"))
				p.body = strings.ReplaceAll(p.body, ",", ",\n")
			},
			"altered_body", "line endings", true,
		},
		"cut off": {
			func(p *patient) { p.header.Set("Content-Length", strconv.Itoa(len(p.body))); p.body = p.body[:90] },
			"altered_body", "announced 373 bytes, and the body has 90", false,
		},
		"wrong charset": {body(func(s string) string { return strings.ReplaceAll(s, "é", "\uFFFD") }), "altered_body", "U+FFFD", false},
		"another event's signature": {func(p *patient) {
			p.sign(diagnosedKey, "1700000000", other)
			p.others = [][]byte{[]byte("no JSON"), []byte(other)}
		}, "other_event", `event "evt_8"`, true},
		"members lost, original given": {func(p *patient) {
			p.others = [][]byte{[]byte(p.body)}
			p.body = strings.Replace(p.body, `,"phone":null`, "", 1)
		}, "reencoded_body", "bytes from number", true},

		// Secrets.
		"wrong secret":             {key("whsec_of_another_endpoint"), "wrong_secret", "1 key(s)", false},
		"no key":                   {func(p *patient) { p.keys = nil }, "no_secret", "No key was given", false},
		"an empty key":             {key(""), "no_secret", "environment variable", false},
		"a line break in the file": {key(diagnosedKey + "\n"), "secret_form", "white space or a line break", true},
		"quotes":                   {key(`"` + diagnosedKey + `"`), "secret_form", "quotes", true},
		"NAME=value":               {key("GATEWAY_SECRET=" + diagnosedKey), "secret_form", "name of its variable", true},
		"the prefix cut off":       {key(strings.TrimPrefix(diagnosedKey, "whsec_")), "secret_form", "lacks the prefix", true},
		"base64 of the secret":     {key(base64.StdEncoding.EncodeToString([]byte(diagnosedKey))), "secret_form", "is in base64", true},
		"hex of the secret":        {key(hex.EncodeToString([]byte(diagnosedKey))), "secret_form", "is in hex", true},
		"percent-encoded":          {signedWith("a%2Bb%2Fc%3D%3Dd", "a+b/c==d"), "secret_form", "percent", true},
		"decoded":                  {signedWith("some bytes!", base64.StdEncoding.EncodeToString([]byte("some bytes!"))), "secret_form", "signs with its base64", true},
		"registered with echo":     {signedWith(diagnosedKey, diagnosedKey+"\n"), "secret_form", "gateway's copy ends with", true},
		"quotes and a line break":  {key("\"" + diagnosedKey + "\"\n"), "secret_form", "white space or a line break around it and has quotes", true},
		"an expired key": {
			func(p *patient) { p.keys[0].NotAfter = p.now.Add(-time.Hour) },
			"secret_expired", "NotAfter has passed", true,
		},
	}
}

func hmacHex(key, content string) string {
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(content))
	return hex.EncodeToString(h.Sum(nil))
}

// signatureAs replaces the delivery's signature with another encoding of it.
func signatureAs(p *patient, change func(digits string) string) {
	digits := strings.TrimPrefix(p.header.Get(webhook.DefaultSignatureHeader), "sha256=")
	p.header.Set(webhook.DefaultSignatureHeader, change(digits))
}

func TestDiagnoseNamesTheCauseOfARejectedSignature(t *testing.T) {
	t.Parallel()
	for name, tc := range diagnosisCases() {
		p := patientWith(tc.change)
		d := p.diagnose()
		require.NotEmpty(t, d.Findings, name)
		assert.Equal(t, tc.cause, d.Findings[0].Cause, "%s: %s", name, d)
		assert.Equal(t, tc.proven, d.Findings[0].Proven, "%s: %s", name, d)
		assert.Contains(t, d.String(), tc.says, name)
		assert.False(t, d.Incomplete, name)
		checkDiagnosis(t, p, d)
		for _, f := range d.Findings {
			assert.NotEmpty(t, f.Detail, name)
			assert.NotEmpty(t, f.Fix, name)
		}
	}
}

// checkDiagnosis compares a diagnosis with Verify and searches it for secrets.
func checkDiagnosis(t *testing.T, p *patient, d webhook.Diagnosis) {
	t.Helper()
	err := p.verifier().Verify(p.header, []byte(p.body))
	if d.Valid != (err == nil) || !d.Valid && (!errors.Is(err, d.Error) || len(d.Findings) == 0) {
		t.Fatalf("Verify says %v, the diagnosis %s", err, d)
	}
	written, jsonErr := json.Marshal(d)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	for _, k := range p.keys {
		if key := k.Key.Reveal(); strings.HasPrefix(key, "whsec_") && len(key) > 8 && strings.Contains(d.String()+string(written), key) {
			t.Fatalf("the diagnosis shows a secret: %s", d)
		}
	}
}

func TestDiagnoseAcceptsAValidDelivery(t *testing.T) {
	t.Parallel()
	p := patientWith(func(p *patient) { p.keys[0].ID = "2026" })
	d := p.diagnose()
	assert.Equal(t, webhook.Diagnosis{Valid: true, KeyID: "2026", Findings: []webhook.Finding{}}, d)
	assert.Equal(t, "valid: signed with 2026", d.String())
	b, err := json.Marshal(d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"valid":true,"key_id":"2026","findings":[]}`, string(b))

	timestamp, signature := webhook.Sign(vectorKey, time.Now(), []byte(vectorBody))
	delivery := webhook.Delivery{Header: headers(timestamp, signature), Body: []byte(vectorBody)}
	assert.True(t, webhook.Diagnose(delivery, []webhook.SigningKey{{Key: vectorKey}}).Valid)
}

func TestDiagnoseNamesTheKeyOfAStaleSignature(t *testing.T) {
	t.Parallel()
	d := patientWith(func(p *patient) {
		p.keys = append([]webhook.SigningKey{{ID: "new", Key: gateway.NewSecret("the_new_one")}}, p.keys...)
		p.keys[1].ID = "old"
		p.now = p.now.Add(time.Hour)
	}).diagnose()
	assert.Equal(t, webhook.ErrStaleTimestamp, d.Error)
	assert.Equal(t, "old", d.KeyID)
}

func TestDiagnoseNamesEveryFaultOfADelivery(t *testing.T) {
	t.Parallel()
	p := patientWith(func(p *patient) {
		remarshaled("  ")(p)
		p.rename(webhook.DefaultSignatureHeader, "X-Op-Signature")
		p.key(diagnosedKey + "\n")
		p.now = p.now.Add(24 * time.Hour)
	})
	d := p.diagnose()
	var causes []string
	for _, f := range d.Findings {
		causes = append(causes, f.Cause)
		assert.True(t, f.Proven, f)
	}
	assert.Equal(t, []string{
		"wrong_header", "secret_form", "reencoded_body", "timestamp_too_old",
	}, causes)
	assert.Equal(t, "Keys[0]", d.KeyID)
	assert.Equal(t, webhook.ErrMissingSignature, d.Error)
	text := d.String()
	assert.True(t, strings.HasPrefix(text, "rejected: missing_signature\n1. wrong_header (proven)\n   The header"), text)
	assert.Equal(t, 4, strings.Count(text, "\n   Fix: "))
}

func TestDiagnoseHidesASecretThatIsUsedElsewhere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *patient){
		"the id of a key":    func(p *patient) { p.keys[0].ID = diagnosedKey },
		"a header's name":    func(p *patient) { p.header = http.Header{diagnosedKey: {"x"}} },
		"a signature's name": func(p *patient) { p.rename(webhook.DefaultSignatureHeader, http.CanonicalHeaderKey(diagnosedKey)) },
		"a header's value":   func(p *patient) { p.header.Set(webhook.DefaultTimestampHeader, diagnosedKey) },
		"the signature":      func(p *patient) { p.header.Set(webhook.DefaultSignatureHeader, diagnosedKey) },
		"the id of the event": func(p *patient) {
			other := strings.ReplaceAll(sentBody, "evt_7", diagnosedKey)
			p.sign(diagnosedKey, "1700000000", other)
			p.others = [][]byte{[]byte(other)}
		},
	} {
		p := patientWith(change)
		d := p.diagnose()
		text := strings.ToLower(fmt.Sprintf("%s %+v", d, d))
		assert.NotContains(t, text, diagnosedKey, name)
	}
}

func TestDiagnoseOfALongBodySaysThatItIsIncomplete(t *testing.T) {
	t.Parallel()
	p := patientWith(func(p *patient) {
		p.body = `{"id":"evt_1","data":"` + strings.Repeat("x", 2<<20) + `"}`
		p.key("another key")
	})
	d := p.diagnose()
	assert.True(t, d.Incomplete)
	assert.Contains(t, d.String(), "Not every explanation was tried")
	checkDiagnosis(t, p, d)
}

func FuzzDiagnose(f *testing.F) {
	cases := diagnosisCases()
	for _, name := range []string{"header in milliseconds", "Go's map", "Python", "compressed", "UTF-16", "a form", "base64 signature"} {
		p := patientWith(cases[name].change)
		f.Add(p.header.Get(webhook.DefaultTimestampHeader), p.header.Get(webhook.DefaultSignatureHeader), "X-Other", []byte(p.body), diagnosedKey, false)
	}
	f.Add("", "0", "0", []byte("0"), "0", true)
	f.Add("1700000000", "", "Time", []byte(`[[{}],1.50,"\ud800"]`), "k", true)
	f.Fuzz(func(t *testing.T, timestamp, signature, name string, body []byte, key string, sign bool) {
		p := &patient{body: string(body), now: time.Unix(vectorTime, 0)}
		p.key(key)
		if sign {
			signature = webhook.SignText(gateway.NewSecret(key), timestamp, body)
		}
		p.header = headers(timestamp, signature)
		p.header[name] = []string{signature, timestamp}
		checkDiagnosis(t, p, p.diagnose())
	})
}
