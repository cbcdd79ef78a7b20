package webhook

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value with its original formatting and member order.
type node struct {
	name    []byte // of a member, unchanged
	raw     []byte // of a string, number, boolean or null
	kind    jsontext.Kind
	members []node // of an object or an array
}

// The limits for values and nesting of a body. Events are far below them.
const (
	maxTree  = 1 << 17
	maxDepth = 64
)

// parseTree parses a body that is one JSON value.
func parseTree(b []byte) (tree node, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	left := maxTree
	if tree, ok = readNode(d, &left); !ok {
		return node{}, false
	}
	return tree, d.PeekKind() == 0 && len(bytes.TrimSpace(b[d.InputOffset():])) == 0
}

func readNode(d *jsontext.Decoder, left *int) (n node, ok bool) {
	if *left--; *left < 0 || d.StackDepth() > maxDepth {
		return n, false
	}
	n.kind = d.PeekKind()
	if n.kind != '{' && n.kind != '[' {
		raw, err := d.ReadValue()
		n.raw = bytes.Clone(raw)
		return n, err == nil
	}
	if _, err := d.ReadToken(); err != nil {
		return n, false
	}
	for d.PeekKind() > 0 && d.PeekKind() != '}' && d.PeekKind() != ']' {
		var name []byte
		if n.kind == '{' {
			raw, err := d.ReadValue()
			if err != nil {
				return n, false
			}
			name = bytes.Clone(raw)
		}
		m, ok := readNode(d, left)
		if !ok {
			return n, false
		}
		m.name = name
		n.members = append(n.members, m)
	}
	_, err := d.ReadToken()
	return n, err == nil
}

// style is the style of a JSON encoder.
type style struct {
	order  order
	escape escape
	comma  string
	colon  string
	indent string
	end    string // after the value
	whole  bool   // 10.0 is written as 10
}

type order uint8

const (
	orderKept   order = iota // as in the body
	orderSent                // the gateway's
	orderSorted              // by name
)

type escape uint8

const (
	escapeKept  escape = iota
	escapeLeast        // only mandatory escapes
	escapeASCII        // Python: all but ASCII
	escapeHTML         // Go: also <, >, &
	escapePHP          // PHP: all but ASCII, and /
)

// writer is a common JSON encoder, identified by its style.
type writer struct {
	name string
	style
}

// writers are listed from the most to the least specific.
func writers() []writer {
	return []writer{
		{"Python's json.dumps", style{comma: ", ", colon: ": ", escape: escapeASCII}},
		{"Python's json.dumps with sort_keys", style{comma: ", ", colon: ": ", escape: escapeASCII, order: orderSorted}},
		{"Python's json.dumps with ensure_ascii=False", style{comma: ", ", colon: ": ", escape: escapeLeast}},
		{"JSON.stringify with an indent of 2", style{indent: "  ", colon: ": ", escape: escapeLeast}},
		{"jq -S", style{indent: "  ", colon: ": ", escape: escapeLeast, order: orderSorted}},
		{"a pretty-printer with an indent of 4", style{indent: "    ", colon: ": ", escape: escapeLeast}},
		{"Python's json.dumps with an indent of 4", style{indent: "    ", colon: ": ", escape: escapeASCII}},
		{"PHP's json_encode with JSON_PRETTY_PRINT", style{indent: "    ", colon: ": ", escape: escapePHP}},
		{"Go's encoding/json with an indent", style{indent: "\t", colon: ": ", escape: escapeHTML}},
		{"PHP's json_encode", style{escape: escapePHP}},
		{"Go's encoding/json of a map", style{escape: escapeHTML, order: orderSorted}},
		{"an encoder that sorts members", style{escape: escapeLeast, order: orderSorted}},
		{"Go's encoding/json", style{escape: escapeHTML}},
		{"JSON.stringify", style{escape: escapeLeast}},
		{"Jackson or another compact encoder", style{escape: escapeLeast}},
	}
}

// rewritten reports whether a body differs from the gateway's JSON: compact, in
// its own order.
func (n node) rewritten(body []byte) bool {
	sent := style{order: orderSent, escape: escapeKept}
	return !bytes.Equal(sent.write(n), body)
}

// originals yields the styles in which the gateway may have written a body,
// starting with the fewest changes.
func originals() iter.Seq[style] {
	return func(yield func(style) bool) {
		for _, layout := range []style{{}, {comma: ", ", colon: ": "}, {indent: "  ", colon: ": "}, {indent: "    ", colon: ": "}} {
			for _, layout.order = range []order{orderKept, orderSent, orderSorted} {
				for _, layout.escape = range []escape{escapeKept, escapeLeast, escapeASCII, escapeHTML, escapePHP} {
					for _, layout.whole = range []bool{false, true} {
						for _, layout.end = range []string{"", "\n"} {
							if !yield(layout) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// differences names what differs between the output of s and the body.
func (s style) differences(n node, body []byte) (list []string) {
	kept := style{order: s.order, comma: s.comma, colon: s.colon, indent: s.indent, end: s.end}
	if s.order != orderKept && !bytes.Equal(style{order: s.order}.write(n), style{}.write(n)) {
		list = append(list, "the order of the members")
	}
	same := s
	same.order = orderKept
	same.escape, same.whole = escapeKept, false
	if !bytes.Equal(same.write(n), body) {
		list = append(list, "white space")
	}
	escaped := kept
	escaped.escape = s.escape
	if !bytes.Equal(escaped.write(n), kept.write(n)) {
		list = append(list, "the escapes in strings")
	}
	if s.whole && !bytes.Equal(s.write(n), escaped.write(n)) {
		list = append(list, "the form of numbers")
	}
	return list
}

// reencoded reports that the body's JSON was parsed and encoded again and, if
// its form shows it, by which encoder.
func (x *examination) reencoded(differences []string) *Finding {
	f := &Finding{
		Cause:  causeReencodedBody,
		Detail: "The JSON was parsed and written again.",
		Fix: "Verify the bytes that arrived. Don't let a body parser run first: use http.Request.Body itself, " +
			"express.raw instead of express.json, request.get_data() instead of request.json.",
	}
	if len(differences) > 0 {
		f.Detail = "The JSON was parsed and written again, which changed " + strings.Join(differences, ", ") + "."
	}
	if tree, ok := parseTree(x.d.Body); ok {
		f.Detail += writtenBy(tree, x.d.Body)
	}
	return f
}

// writtenBy names the encoders whose output looks like the body, the most
// likely first.
func writtenBy(n node, body []byte) string {
	const most = 3
	body = bytes.TrimSpace(body)
	var names []string
	for _, w := range writers() {
		if bytes.Equal(w.write(n), body) && len(names) < most {
			names = append(names, w.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " It looks like the output of " + strings.Join(names, ", or of ") + "."
}

// sentOrder is the order in which the gateway writes members. It is the same in
// all of its objects.
const sentOrder = "id event event_type correlation_id method status previous_status type api_version data object amount base_price paid_amount " +
	"refunded_amount fee net_amount transferred_at currency external_ref created_at paid_at interval interval_count current_period_start " +
	"current_period_end cancel_at_period_end cycle_count customer_email failure_policy trial_end metadata occurred_at latest_transaction " +
	"attempt_number failure_reason customer name email phone products title unit_price quantity informations key value"

// sorted returns the members in an order. Members that the gateway does not have
// follow the others, in their own order.
func (o order) sorted(members []node) []node {
	if o == orderKept {
		return members
	}
	list := slices.Clone(members)
	rank := strings.Fields(sentOrder)
	slices.SortStableFunc(list, func(a, b node) int {
		if o == orderSorted {
			return bytes.Compare(a.name, b.name)
		}
		place := func(n node) uint { return uint(slices.Index(rank, strings.Trim(string(n.name), `"`))) } //nolint:gosec // -1 becomes the last place
		return cmp.Compare(place(a), place(b))
	})
	return list
}

// write writes a value in a style.
func (s style) write(n node) []byte { return append(s.append(nil, n, "\n"), s.end...) }

func (s style) append(b []byte, n node, newline string) []byte {
	switch {
	case n.kind == '"':
		return s.appendString(b, n.raw)
	case n.kind == '0' && s.whole && bytes.Contains(n.raw, []byte(".")) && !bytes.ContainsAny(n.raw, "eE"):
		return append(b, bytes.TrimRight(bytes.TrimRight(n.raw, "0"), ".")...)
	case n.kind != '{' && n.kind != '[':
		return append(b, n.raw...)
	}
	b = append(b, byte(n.kind))
	members, inner := n.members, newline+s.indent
	if n.kind == '{' {
		members = s.order.sorted(members)
	}
	for i, m := range members {
		if i > 0 {
			b = append(b, cmp.Or(s.comma, ",")...)
		}
		if s.indent != "" {
			b = append(b, inner...)
		}
		if n.kind == '{' {
			b = append(s.appendString(b, m.name), cmp.Or(s.colon, ":")...)
		}
		b = s.append(b, m, inner)
	}
	if s.indent != "" && len(members) > 0 {
		b = append(b, newline...)
	}
	return append(b, byte(n.kind)+2) // '}' and ']' are '{' and '[' plus two
}

func (s style) appendString(b, literal []byte) []byte {
	if s.escape == escapeKept {
		return append(b, literal...)
	}
	text, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		return append(b, literal...)
	}
	b = append(b, '"')
	for _, r := range string(text) {
		b = s.appendRune(b, r)
	}
	return append(b, '"')
}

func (s style) appendRune(b []byte, r rune) []byte {
	const short = "\"\\\b\f\n\r\t"
	ascii := s.escape == escapeASCII || s.escape == escapePHP
	switch i := strings.IndexRune(short, r); {
	case i >= 0 && r < utf8.RuneSelf:
		return append(b, '\\', `"\bfnrt`[i])
	case r == '/' && s.escape == escapePHP:
		return append(b, '\\', '/')
	case r < ' ' || ascii && r >= utf8.RuneSelf,
		s.escape == escapeHTML && (r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'):
		return appendEscape(b, r)
	default:
		return utf8.AppendRune(b, r)
	}
}

// appendEscape writes \uXXXX, with a surrogate pair for characters beyond the
// first plane.
func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	if r > 0xffff {
		r -= 0x10000
		b = appendEscape(b, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	return append(b, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}
