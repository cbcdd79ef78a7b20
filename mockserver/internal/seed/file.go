// Package seed reads a file that describes the resources of a gateway and creates
// them. It creates each entry with an API request, and brings it into its state
// with the engine's own transitions.
//
// A new kind of entry needs a line in sections, and a machine if it has states.
package seed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/duration"
)

// File is a parsed seed file.
type File struct {
	Webhooks bool // whether webhooks about the entries are sent

	name     string
	text     []byte
	offsets  map[string]int // the position of each member or element, by its path
	accounts []account
	errs     Errors
}

// account holds the entries of one account. The key of the default account is "".
type account struct {
	key, path string
	entries   []*entry
}

// entry is one resource of the file.
type entry struct {
	section
	account *account
	path    string // "customers[2]"

	as       string // its name in the file
	state    string
	at       time.Time // zero if the file does not set it
	refunded int64     // in cents, for the state partially_refunded
	settled  *int64    // in cents; nil means what the server settles
	failNext int       // number of a subscription's charges that fail
	body     map[string]jsontext.Value

	id     string
	status func() string // its resource's state; nil if the file sets none
}

// section is a kind of entry.
type section struct {
	name   string
	create spec.Operation
	refs   []string // members that may refer to another entry: "@ana"
	own    []string // members of the entry that are not part of the request
}

// sections returns the kinds of entries in the order in which they are created.
func sections() []section {
	return []section{
		{name: "customers", create: spec.Customers.Create, own: []string{"as", "at"}},
		{name: "links", create: spec.CheckoutLinks.Create, own: []string{"as", "at", "state"}},
		{
			name: "transactions", create: spec.Transactions.Create, refs: []string{"buyer.id"},
			own: []string{"as", "at", "state", "refunded_amount", "settled_amount"},
		},
		{name: "transfers", create: spec.Transfers.Create, own: []string{"as", "at", "state"}},
		{
			name: "subscriptions", create: spec.Subscriptions.Create, refs: []string{"customer_id"},
			own: []string{"as", "at", "state", "fail_next"},
		},
	}
}

// Error is one error in a file.
type Error struct {
	File         string
	Line, Column int
	Path         string // of the member: "customers[2].email"; "" for the whole file
	Message      string
}

// Error returns "shop.json:12:5: customers[2].email: must be an e-mail address".
func (e Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Message
}

// Errors are the errors in a file in the order of its lines.
type Errors []Error

// Error returns the errors, one per line.
func (e Errors) Error() string {
	const most = 20
	var lines []string
	for i, one := range e {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-most))
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Parse parses a seed file, whose relative times count from now. If the file is
// invalid, the error is [Errors].
func Parse(name string, text []byte, now time.Time) (*File, error) {
	text = jsonread.WithoutMark(text)
	f := &File{name: cmp.Or(name, "seed"), text: text, offsets: map[string]int{}}
	if err := f.locate(); err != nil {
		return nil, err
	}
	top, ok := f.object(text, "")
	if ok {
		f.account(top, account{}, []string{"$schema", "webhooks", "accounts"}, now)
		f.webhooks(top)
		f.otherAccounts(top, now)
	}
	f.names()
	return f, f.failed()
}

// Accounts returns the keys of the accounts in which the file creates something. first
// is that of the entries at the top.
func (f *File) Accounts(first string) (keys []string) {
	for _, a := range f.accounts {
		if len(a.entries) > 0 {
			keys = append(keys, cmp.Or(a.key, first))
		}
	}
	return keys
}

func (f *File) failed() error {
	if len(f.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(f.errs, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return f.errs
}

const (
	maxLocated = 64  // levels whose values have a position
	maxShown   = 200 // bytes of a path in an error
)

// locate finds the positions of all values.
func (f *File) locate() error {
	d := jsontext.NewDecoder(bytes.NewReader(f.text))
	end := 0
	for end == 0 || d.StackDepth() > 0 {
		token, err := d.ReadToken()
		if err != nil {
			return f.syntax(err)
		}
		start := end + len(f.text[end:]) - len(bytes.TrimLeft(f.text[end:], " \t\r\n,:"))
		end = int(d.InputOffset())
		if d.StackDepth() > maxLocated {
			continue // an error is reported at the value around it
		}
		path := pathOf(d)
		if _, known := f.offsets[path]; !known && token.Kind() != '}' && token.Kind() != ']' {
			f.offsets[path] = start
		}
	}
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return f.syntax(err)
	default:
		return f.syntax(errors.New("there is more than one value"))
	}
}

func (f *File) syntax(err error) error {
	offset := len(f.text)
	var broken *jsontext.SyntacticError
	if errors.As(err, &broken) {
		offset = int(broken.ByteOffset)
		err = broken.Err
	}
	line, column := f.position(offset)
	return Errors{{f.name, line, column, "", fmt.Sprintf("is not JSON: %v", err)}}
}

// pathOf returns the path of the value read last: "customers[2].email".
func pathOf(d *jsontext.Decoder) string {
	var b strings.Builder
	depth := d.StackDepth()
	for i, name := range slices.Collect(d.StackPointer().Tokens()) {
		kind, _ := d.StackIndex(min(i+1, depth))
		switch {
		case kind == '[':
			b.WriteString("[" + name + "]")
		case b.Len() > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

func (f *File) position(offset int) (line, column int) {
	before := f.text[:min(offset, len(f.text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, len([]rune(string(before[start:]))) + 1
}

// fail records an error in a member, at the position of the member or of the
// innermost value around it.
func (f *File) fail(path, format string, args ...any) {
	around := path
	for around != "" {
		if _, known := f.offsets[around]; known {
			break
		}
		around = around[:max(strings.LastIndexAny(around, ".["), 0)]
	}
	line, column := f.position(f.offsets[around])
	f.errs = append(f.errs, Error{f.name, line, column, truncate.Ellipsis(path, maxShown), fmt.Sprintf(format, args...)})
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (f *File) object(raw jsontext.Value, path string) (map[string]jsontext.Value, bool) {
	var members map[string]jsontext.Value
	if raw.Kind() != '{' || json.Unmarshal(raw, &members) != nil {
		f.fail(path, "must be an object")
		return nil, false
	}
	return members, true
}

func (f *File) list(raw jsontext.Value, path string) (list []jsontext.Value) {
	if raw != nil && (raw.Kind() != '[' || json.Unmarshal(raw, &list) != nil) {
		f.fail(path, "must be an array")
	}
	return list
}

func (f *File) webhooks(top map[string]jsontext.Value) {
	if raw, sent := top["webhooks"]; sent && json.Unmarshal(raw, &f.Webhooks) != nil {
		f.fail("webhooks", "must be true or false")
	}
}

// otherAccounts reads the accounts besides the default one.
func (f *File) otherAccounts(top map[string]jsontext.Value, now time.Time) {
	seen := map[string]bool{}
	for i, raw := range f.list(top["accounts"], "accounts") {
		path := "accounts[" + strconv.Itoa(i) + "]"
		members, ok := f.object(raw, path)
		if !ok {
			continue
		}
		var key string
		switch err := json.Unmarshal(members["key"], &key); {
		case err != nil || key == "":
			f.fail(path+".key", "must be the account's API key")
		case seen[key]:
			f.fail(path+".key", "is the key of an earlier account")
		}
		seen[key] = true
		f.account(members, account{key: key, path: path}, []string{"key"}, now)
	}
}

// account reads the sections of an account.
func (f *File) account(members map[string]jsontext.Value, a account, other []string, now time.Time) {
	known := slices.Clone(other)
	for _, s := range sections() {
		known = append(known, s.name)
		at := join(a.path, s.name)
		for i, raw := range f.list(members[s.name], at) {
			e := &entry{section: s, path: at + "[" + strconv.Itoa(i) + "]"}
			if f.entry(e, raw, now) {
				a.entries = append(a.entries, e)
			}
		}
	}
	f.unknown(members, a.path, known)
	f.accounts = append(f.accounts, a)
}

func (f *File) unknown(members map[string]jsontext.Value, path string, known []string) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			f.fail(join(path, name), "is unknown; must be one of %s", strings.Join(known, ", "))
		}
	}
}

// entry reads one entry. The API's rules check its request when the entry is
// created. entry itself rejects unknown members, which a gateway would ignore, in
// order to catch typos.
func (f *File) entry(e *entry, raw jsontext.Value, now time.Time) bool {
	members, ok := f.object(raw, e.path)
	if !ok {
		return false
	}
	for _, own := range []struct {
		name string
		to   any
		must string
	}{
		{"as", &e.as, "a name"},
		{"state", &e.state, "the name of a state"},
		{"refunded_amount", &e.refunded, "an amount in cents"},
		{"settled_amount", &e.settled, "an amount in cents"},
		{"fail_next", &e.failNext, "a number of charges"},
	} {
		if raw, sent := members[own.name]; sent && slices.Contains(e.own, own.name) {
			delete(members, own.name)
			if err := json.Unmarshal(raw, own.to); err != nil || e.refunded < 0 || e.failNext < 0 || e.settled != nil && *e.settled < 1 {
				f.fail(e.path+"."+own.name, "must be %s", own.must)
			}
		}
	}
	if e.refunded > 0 && e.state != "partially_refunded" {
		f.fail(e.path+".refunded_amount", `is allowed only with the state "partially_refunded"`)
	}
	if raw, sent := members["at"]; sent {
		delete(members, "at")
		e.at = f.time(raw, e.path+".at", now)
	}
	shape := spec.Describe(e.create.Rule, spec.Variant{})
	f.mistyped(members, shape, e.path, e.own)
	e.body = members
	return true
}

// mistyped reports the members that the rules do not have.
func (f *File) mistyped(members map[string]jsontext.Value, shape *spec.Shape, path string, own []string) {
	var known []string
	for _, m := range shape.Members {
		known = append(known, m.Name)
		inner := join(path, m.Name)
		switch raw := members[m.Name]; {
		case raw == nil:
		case len(m.Members) > 0 && raw.Kind() == '{':
			if sub, ok := f.object(raw, inner); ok {
				f.mistyped(sub, m, inner, nil)
			}
		case m.Element != nil && len(m.Element.Members) > 0 && raw.Kind() == '[':
			for i, raw := range f.list(raw, inner) {
				if place := inner + "[" + strconv.Itoa(i) + "]"; raw.Kind() == '{' {
					if sub, ok := f.object(raw, place); ok {
						f.mistyped(sub, m.Element, place, nil)
					}
				}
			}
		}
	}
	f.unknown(members, path, append(slices.Clone(own), known...))
}

// time reads when an entry was created: a timestamp, or a negative duration.
func (f *File) time(raw jsontext.Value, path string, now time.Time) (at time.Time) {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		if offset, invalid := duration.Parse(text); invalid == nil {
			at = now.Add(offset)
		} else {
			at, err = time.Parse(time.RFC3339, text)
		}
	}
	switch {
	case err != nil:
		f.fail(path, `must be a negative duration, such as "-40d", or a timestamp, such as "2027-01-04T12:00:00Z"`)
	case at.After(now):
		f.fail(path, "must not be after the time of the virtual clock, %s", now.UTC().Format(time.RFC3339))
	case at.Year() < 1970:
		f.fail(path, "must not be before 1970")
	default:
		return at.UTC().Truncate(time.Millisecond)
	}
	return now
}

// names checks that the names of entries are valid and unique in the file.
func (f *File) names() {
	all := map[string]bool{}
	for i := range f.accounts {
		a := &f.accounts[i]
		for _, e := range a.entries {
			e.account = a
			switch {
			case e.as == "":
			case strings.HasPrefix(e.as, "@"):
				f.fail(e.path+".as", "must not start with @, which marks a reference")
			case all[e.as]:
				f.fail(e.path+".as", "is the name of an earlier entry")
			}
			all[e.as] = true
		}
	}
}
