package webhook

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/maphash"
	"html"
	"io"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// variant is a body that the gateway may have signed instead of the one that
// arrived.
type variant struct {
	body    []byte
	finding func() *Finding // the change of the body; nil for the body as it arrived
}

func (v variant) explain() *Finding {
	if v.finding == nil {
		return nil
	}
	return v.finding()
}

// variants yields the body as it arrived and, once each, the bodies from which
// it may have been altered or re-encoded.
func (x *examination) variants() iter.Seq[variant] {
	return func(yield func(variant) bool) {
		if !yield(variant{body: x.d.Body}) || len(x.d.Body) == 0 || len(x.d.Body) > maxVaried {
			return
		}
		seed := maphash.MakeSeed()
		seen := map[uint64]bool{maphash.Bytes(seed, x.d.Body): true}
		fresh := func(v variant) bool {
			x.work -= len(v.body)
			sum := maphash.Bytes(seed, v.body)
			if seen[sum] || x.work < 0 {
				return x.work >= 0
			}
			seen[sum] = true
			return yield(v)
		}
		for _, a := range alterations() {
			for _, body := range a.undo(x.d.Body) {
				if !fresh(variant{body, a.finding}) {
					return
				}
			}
		}
		tree, ok := parseTree(x.d.Body)
		if !ok {
			return
		}
		for s := range originals() {
			body := s.write(tree)
			if !fresh(variant{body, func() *Finding { return x.reencoded(s.differences(tree, x.d.Body)) }}) {
				return
			}
		}
	}
}

// alteration is a change of a body in transit, and how to undo it.
type alteration struct {
	what string // the change of the body
	fix  string
	undo func(body []byte) [][]byte
}

func (a alteration) finding() *Finding {
	return &Finding{Cause: causeAlteredBody, Detail: "The body " + a.what + ".", Fix: a.fix}
}

const rawBytes = "Verify the bytes that arrived, before anything changes them."

func alterations() []alteration {
	one := func(do func(b []byte) []byte) func([]byte) [][]byte {
		return func(b []byte) [][]byte {
			if out := do(b); out != nil {
				return [][]byte{out}
			}
			return nil
		}
	}
	return []alteration{
		{"has white space or a line break around it that the gateway did not send", rawBytes, one(bytes.TrimSpace)},
		{"was trimmed: the gateway sent a line break or a space at its end", rawBytes, func(b []byte) (list [][]byte) {
			for _, end := range []string{"\n", "\r\n", " ", "\x00"} {
				list = append(list, append(bytes.Clone(b), end...))
			}
			return list
		}},
		{"has different line endings: CRLF instead of LF", rawBytes, one(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		})},
		{"has different line endings: LF instead of CRLF", rawBytes, one(func(b []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
		})},
		{"begins with a byte order mark that was added", rawBytes, one(func(b []byte) []byte {
			return bytes.TrimPrefix(b, []byte("\uFEFF"))
		})},
		{"lost the byte order mark that it began with", rawBytes, one(func(b []byte) []byte {
			return append([]byte("\uFEFF"), b...)
		})},
		{"is in base64, as cloud functions pass a body with isBase64Encoded", "Decode the body before it is verified.", unBase64},
		{"is compressed", "Verify the body after decompression, or have the proxy leave the body alone.", one(unzip)},
		{"is a JSON string that contains the body", "Decode the string before the body is verified: it was encoded twice.", one(unquoted)},
		{"is the event of a cloud function or a queue, with the gateway's body in one of its members", "Pass the string in that member instead of the whole event.", wrapped},
		{"is form-encoded", "Read the body itself instead of a form field.", unform},
		{"has HTML entities", rawBytes, one(func(b []byte) []byte { return []byte(html.UnescapeString(string(b))) })},
		{"was read as Latin-1 or Windows-1252 and written as UTF-8", "Read the body as bytes, or as UTF-8.", one(unLatin1)},
		{"was written as Latin-1: the gateway sends UTF-8", "Read the body as bytes, or as UTF-8.", one(fromLatin1)},
		{"was written as UTF-16: the gateway sends UTF-8", "Read the body as bytes, or as UTF-8.", one(fromUTF16)},
	}
}

func unBase64(b []byte) [][]byte { return base64Decoded[[]byte](strings.TrimSpace(string(b))) }

func unzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(io.LimitReader(r, maxVaried))
	if err != nil {
		return nil
	}
	return out
}

func unquoted(b []byte) []byte {
	out, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(b))
	if err != nil {
		return nil
	}
	return out
}

// wrapped returns the string members of a JSON object, such as the "body" of a
// cloud function's event or the "Message" of a queue's.
func wrapped(b []byte) (list [][]byte) {
	tree, ok := parseTree(b)
	if !ok {
		return nil
	}
	for i := range tree.members {
		if text := unquoted(tree.members[i].raw); len(text) > len(`{"id":""}`) {
			list = append(append(list, text), unBase64(text)...)
		}
	}
	return list
}

func unform(b []byte) (list [][]byte) {
	text, err := url.QueryUnescape(string(b))
	if err != nil || text == string(b) {
		return nil
	}
	list = append(list, []byte(text), []byte(strings.TrimSuffix(text, "=")))
	if form, err := url.ParseQuery(string(b)); err == nil {
		for _, values := range form {
			for _, v := range values {
				list = append(list, []byte(v))
			}
		}
	}
	return list
}

// windows1252 maps the bytes from 0x80 to 0x9f; 0 means that the byte maps to
// itself.
const windows1252 = "€\x00‚ƒ„…†‡ˆ‰Š‹Œ\x00Ž\x00\x00‘’“”•–—˜™š›œ\x00žŸ"

func unLatin1(b []byte) []byte {
	table := []rune(windows1252)
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r > 0xff {
			i := slices.Index(table, r)
			if i < 0 {
				return nil
			}
			out = append(out, byte(0x80+i)) //nolint:gosec // the table has 32 runes
			continue
		}
		out = append(out, byte(r)) //nolint:gosec // at most 255
	}
	return out
}

func fromLatin1(b []byte) []byte {
	if utf8.Valid(b) {
		return nil
	}
	var out []byte
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

func fromUTF16(b []byte) []byte {
	if len(b)%2 != 0 || bytes.IndexByte(b, 0) < 0 {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0 || bytes.HasPrefix(b, []byte{0xfe, 0xff}) {
		order = binary.BigEndian
	}
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i < len(b); i += 2 {
		units = append(units, order.Uint16(b[i:]))
	}
	return bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\uFEFF"))
}

// suspicions are the findings for a body that could not be restored.
func (x *examination) suspicions() (list []Finding) {
	altered := func(detail, fix string) {
		list = append(list, Finding{Cause: causeAlteredBody, Detail: detail, Fix: fix})
	}
	if sent := values(x.d.Header, "Content-Length"); len(sent) == 1 && sent[0] != strconv.Itoa(len(x.d.Body)) {
		if n, err := strconv.ParseUint(sent[0], 10, 63); err == nil {
			altered("The sender announced "+strconv.FormatUint(n, 10)+" bytes, and the body has "+strconv.Itoa(len(x.d.Body))+".", rawBytes)
		}
	}
	if bytes.ContainsRune(x.d.Body, utf8.RuneError) {
		altered("The body has replacement characters (U+FFFD): it was read in the wrong charset.", "Read the body as bytes, or as UTF-8.")
	}
	tree, ok := parseTree(x.d.Body)
	if !ok {
		altered("The body is not JSON.", rawBytes)
		return list
	}
	if tree.rewritten(x.d.Body) {
		f := x.reencoded(nil)
		f.Detail = "The white space, the order or the escapes of the JSON are not the gateway's." + writtenBy(tree, x.d.Body)
		list = append(list, *f)
	}
	return list
}
