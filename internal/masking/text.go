package masking

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// personalNames are the names of members with phone numbers, e-mail addresses and
// the like, in lower case without underscores. Credentials, documents, Pix keys
// and cards are in [Member].
var personalNames = []string{
	"email", "mail", "customeremail", "phone", "phonenumber", "mobile", "whatsapp", "birthdate", "documentnumber", "pixkey", "pixkeyvalue",
	"cpf", "cnpj", "cpfcnpj", "rfc", "curp", "rut", "dni", "taxid",
}

// isPersonal reports whether the innermost name of a path is one of personal data.
func isPersonal(path []string) bool { return len(path) > 0 && Personal(path[len(path)-1]) }

// Personal reports whether a member is personal data, judged by its name.
func Personal(name string) bool {
	return slices.Contains(personalNames, strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)))
}

// The patterns of personal data in text. A document of letters and digits is
// recognized by its form, and a CNPJ by its check digits too.
var patterns = []pattern{
	{form: regexp.MustCompile(`://[^/\s:@"]*:[^/\s@"]*@`)},
	{form: regexp.MustCompile(`[\w.+%-]+@[\w-]+(?:\.[\w-]+)+`)},
	{document: true, form: regexp.MustCompile(`\b\d{3}\.\d{3}\.\d{3}-\d{2}\b`)},                               // CPF
	{document: true, form: regexp.MustCompile(`\b[0-9A-Z]{2}\.[0-9A-Z]{3}\.[0-9A-Z]{3}/[0-9A-Z]{4}-\d{2}\b`)}, // CNPJ
	{document: true, form: regexp.MustCompile(`\b[0-9A-Z]{12}\d{2}\b`), valid: isKey("CNPJ")},
	{document: true, form: regexp.MustCompile(`\b\d{11}\b`), valid: isKey("CPF")},
	{document: true, form: regexp.MustCompile(`(?i)\b[A-Z]{4}\d{6}[HMX][A-Z]{5}[0-9A-Z]\d\b`)},                             // CURP
	{document: true, form: regexp.MustCompile(`\b[A-ZÑ&]{3,4}\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[0-9A-Z]{3}\b`)}, // RFC
	{document: true, form: regexp.MustCompile(`\b\d{1,2}\.\d{3}\.\d{3}(?:-[\dkK])?\b`)},                                    // RUT, DNI
	{document: true, form: regexp.MustCompile(`\b\d{7,8}-[\dkK]\b`)},                                                       // RUT
	{document: true, form: regexp.MustCompile(`\b\d{2}-\d{8}-\d\b`)},                                                       // CUIT
	{form: regexp.MustCompile(`\+\d[\d ().-]{7,18}\d\b`)},                                                                  // the rest are phone numbers
	{form: regexp.MustCompile(`\(\d{2,3}\) ?\d{4,5}[- ]?\d{4}\b`)},
	{document: true, form: regexp.MustCompile(`\b\d{2} \d{4,5}-\d{4}\b`)},
}

type pattern struct {
	form     *regexp.Regexp
	document bool              // it may be a part of a reference
	valid    func(string) bool // nil: always
}

func isKey(keyType string) func(string) bool {
	return func(s string) bool {
		_, ok := spec.NormalPixKey(keyType, s)
		return ok
	}
}

// Text masks card numbers, tokens, documents, phone numbers, e-mail addresses and
// passwords in URLs. References, ids and amounts stay readable.
func Text(s string) string {
	if len(s) < 6 {
		return s
	}
	for _, prefix := range [...]string{"sk_test_", "sk_live_", "pk_test_", "pk_live_", "whsec_", "pgct_", "pgpm_"} {
		s = maskAfter(s, prefix)
	}
	s = spec.MaskCardNumbers(s)
	for _, p := range patterns {
		s = p.mask(s)
	}
	return s
}

// mask masks all matches. A match within a longer word is left: shop-52998224725 is
// a reference.
func (p pattern) mask(s string) string {
	var b strings.Builder
	at := 0
	for _, found := range p.form.FindAllStringIndex(s, -1) {
		from, to := found[0], found[1]
		within := from > 0 && isWordPart(s[from-1]) || to < len(s) && isWordPart(s[to])
		switch {
		case s[from] == ':': // a password in a URL
			b.WriteString(s[at:from] + "://" + Masked + "@")
		case p.document && within, p.valid != nil && !p.valid(s[from:to]):
			continue
		default:
			b.WriteString(s[at:from] + Masked)
		}
		at = to
	}
	return b.String() + s[at:]
}

// Sent are the values of one request: those that must be masked wherever a
// response echoes them, and references, which stay readable although they may look
// like a document.
type Sent struct{ secret, reference []string }

// minEcho is the minimum length of a value to search for. Shorter ones, such as
// "x", occur in too many other texts.
const minEcho = 5

// Learn adds the values of a JSON body.
func (s *Sent) Learn(body []byte) { s.learn(body, s.add) }

// LearnAll adds every string of a JSON body, also names and free text, except
// references and key.
func (s *Sent) LearnAll(body []byte, key string) {
	s.learn(body, func(path []string, t jsontext.Token) {
		if s.add(path, t); t.Kind() == '"' && t.String() != key && !slices.Contains(s.reference, t.String()) {
			s.hide(t.String())
		}
	})
}

func (s *Sent) learn(body []byte, add func(path []string, t jsontext.Token)) {
	_, _ = jsonread.Rewriter{Value: func(out *jsontext.Encoder, path []string, t jsontext.Token) error {
		if k := t.Kind(); k == '"' || k == '0' {
			add(path, t)
		}
		return out.WriteToken(t)
	}}.Rewrite(body)
	s.sort()
}

// LearnParameter adds the value of a query parameter.
func (s *Sent) LearnParameter(name, value string) {
	s.add([]string{name}, jsontext.String(value))
	if Parameter(name) {
		s.hide(value)
	}
	s.sort()
}

func (s *Sent) add(path []string, t jsontext.Token) {
	text := t.String()
	switch {
	case len(text) < minEcho:
	case Member(path, t), isPersonal(path):
		s.hide(text)
	case len(path) > 0 && spec.IsIdentifier(path[len(path)-1]):
		s.reference = append(s.reference, text)
	}
}

// hide adds a value, as it was sent and in its plain forms.
func (s *Sent) hide(text string) {
	if len(text) < minEcho {
		return
	}
	s.secret = append(s.secret, text, strings.ToLower(text), strings.ToUpper(text))
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, text)
	digits := spec.OnlyDigits(text)
	for _, form := range []string{plain, digits, strings.TrimPrefix(digits, "55")} {
		if len(form) >= 7 {
			s.secret = append(s.secret, form)
		}
	}
	switch { // as documents are usually written
	case len(digits) == 11:
		s.secret = append(s.secret, digits[:3]+"."+digits[3:6]+"."+digits[6:9]+"-"+digits[9:])
	case len(plain) == 14:
		s.secret = append(s.secret, plain[:2]+"."+plain[2:5]+"."+plain[5:8]+"/"+plain[8:12]+"-"+plain[12:])
	}
}

// sort puts the longest first, so that no part of a value remains.
func (s *Sent) sort() {
	longest := func(a, b string) int { return len(b) - len(a) }
	slices.SortFunc(s.secret, longest)
	slices.SortFunc(s.reference, longest)
}

// Hide masks the values that were sent.
func (s *Sent) Hide(text string) string {
	for _, secret := range s.secret {
		text = strings.ReplaceAll(text, secret, Masked)
	}
	return text
}

// Text is [Text] without the references that were sent: mask is applied to all
// parts between them.
func (s *Sent) Text(text string, mask func(string) string) string {
	if s == nil {
		return mask(text)
	}
	for _, reference := range s.reference {
		if before, after, found := strings.Cut(text, reference); found {
			return s.Text(before, mask) + reference + s.Text(after, mask)
		}
	}
	return mask(s.Hide(text))
}

// Message is [Text] for a message from the gateway or the network. It also masks
// every number that is long enough for a document, since it may be someone else's.
func Message(s string) string { return maskNumbers(Text(s)) }

// maskAfter masks the letters and digits that follow each prefix.
func maskAfter(s, prefix string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, prefix)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(prefix + "…")
		s = strings.TrimLeftFunc(after, func(r rune) bool {
			return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
		})
	}
}

// maskNumbers masks numbers of at least 11 digits, including those written like
// 000.000.000-00 or in groups. UUIDs are not masked, since their groups contain
// letters.
func maskNumbers(s string) string {
	const shortest = 11 // a CPF
	var b strings.Builder
	for i := 0; i < len(s); {
		end, digits := number(s[i:])
		word := i > 0 && isWordPart(s[i-1]) || i+end < len(s) && isWordPart(s[i+end])
		if digits >= shortest && !word {
			b.WriteString("***")
		} else {
			b.WriteString(s[i : i+max(end, 1)])
		}
		i += max(end, 1)
	}
	return b.String()
}

// number returns the length of the digits and separators that s starts with,
// and the number of digits among them.
func number(s string) (end, digits int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			end, digits = i+1, digits+1
		case digits > 0 && (c == '.' || c == '-' || c == '/' || c == ' ') && i == end:
		default:
			return end, digits
		}
	}
	return end, digits
}

// isWordPart reports whether c is a word character other than a digit, which makes adjacent
// digits part of a word.
func isWordPart(c byte) bool {
	return c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
