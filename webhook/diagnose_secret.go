package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secretForm is a secret that a given key may stand for.
type secretForm struct {
	index int // of the key
	text  string
	wrong []string // the faults of the given key; none for the key itself
	fix   string
}

// secretChange turns a key into one that may have been intended.
type secretChange struct {
	name string // what is wrong with the key, after "the given key "
	fix  string
	do   func(key string) []string
}

const plainSecret = "Give the receiver the secret's text alone, exactly as the gateway has it."

var assignment = regexp.MustCompile(`^(?:export )?[A-Za-z_][A-Za-z0-9_]*=`)

// secretChanges are the mistakes, the most likely first.
func secretChanges() []secretChange {
	one := func(do func(string) string) func(string) []string {
		return func(key string) []string { return []string{do(key)} }
	}
	return []secretChange{
		{
			"has white space or a line break around it",
			"Trim the secret after reading it from a file or variable: strings.TrimSpace.", one(strings.TrimSpace),
		},
		{"has quotes around it", plainSecret, one(func(s string) string { return strings.Trim(s, "\"'`") })},
		{"contains the name of its variable", plainSecret, one(func(s string) string { return s[len(assignment.FindString(s)):] })},
		{"has a prefix", plainSecret, cutPrefixes},
		{"lacks the prefix whsec_", plainSecret, one(func(s string) string { return "whsec_" + s })},
		{"ends with a literal \\n", plainSecret, one(func(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, `\n`), `\r`) })},
		{"begins with a byte order mark", plainSecret, one(func(s string) string { return strings.TrimPrefix(s, "\uFEFF") })},
		{"is in base64", "Decode the secret, or take the text that the gateway shows.", base64Decoded[string]},
		{"is in hex", "Decode the secret, or take the text that the gateway shows.", one(hexDecoded)},
		{"is percent-encoded", plainSecret, percentDecoded},
		{"is decoded, and the gateway signs with its base64", "Use the secret as the gateway shows it: don't decode it.", base64Encoded},
		{"is decoded, and the gateway signs with its hex", "Use the secret as the gateway shows it: don't decode it.", hexEncoded},
		{
			"lacks the line break that the gateway's copy ends with",
			"Register the secret at the gateway again, without a line break: printf instead of echo.",
			func(s string) []string { return []string{s + "\n", s + "\r\n", s + " "} },
		},
		{"is in a different letter case", plainSecret, func(s string) []string { return []string{strings.ToLower(s), strings.ToUpper(s)} }},
	}
}

func cutPrefixes(s string) (list []string) {
	for _, prefix := range []string{"whsec_", signaturePrefix, "Bearer ", "base64:", "hex:", "secret:"} {
		if rest, found := strings.CutPrefix(s, prefix); found {
			list = append(list, rest)
		}
	}
	return list
}

// base64Encodings returns the ways to write base64.
func base64Encodings() []*base64.Encoding {
	return []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}
}

// base64Decoded returns what s can mean in base64.
func base64Decoded[T string | []byte](s string) (list []T) {
	for _, enc := range base64Encodings() {
		if b, err := enc.DecodeString(s); err == nil {
			list = append(list, T(b))
		}
	}
	return list
}

func base64Encoded(s string) (list []string) {
	for _, enc := range base64Encodings() {
		list = append(list, enc.EncodeToString([]byte(s)))
	}
	return list
}

func hexDecoded(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return s
	}
	return string(b)
}

func hexEncoded(s string) []string {
	text := hex.EncodeToString([]byte(s))
	return []string{text, strings.ToUpper(text)}
}

func percentDecoded(s string) (list []string) {
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if text, err := decode(s); err == nil {
			list = append(list, text)
		}
	}
	return list
}

// makeForms returns the keys, and the keys after one or two changes.
func (x *examination) makeForms() (list []secretForm) {
	for i, k := range x.v.Keys {
		if k.Key.IsZero() {
			continue
		}
		given := secretForm{index: i, text: k.Key.Reveal()}
		seen := map[string]bool{given.text: true}
		once := given.changed(seen)
		list = append(append(list, given), once...)
		for _, f := range once {
			list = append(list, f.changed(seen)...)
		}
	}
	return list
}

// changed returns the forms after one more change.
func (f secretForm) changed(seen map[string]bool) (made []secretForm) {
	for _, c := range secretChanges() {
		for _, text := range c.do(f.text) {
			if text == "" || seen[text] {
				continue
			}
			seen[text] = true
			made = append(made, secretForm{f.index, text, append(slices.Clip(f.wrong), c.name), cmp.Or(f.fix, c.fix)})
		}
	}
	return made
}

// inForm reports that a key was given in a different form from the gateway's.
func (x *examination) inForm(f secretForm) *Finding {
	if len(f.wrong) == 0 {
		return nil
	}
	return &Finding{
		Cause:  causeSecretForm,
		Detail: "The signature was made with another form of " + x.keyID(f.index) + ": the given key " + strings.Join(f.wrong, " and ") + ".",
		Fix:    f.fix,
	}
}
