package faults

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// A form is one way in which live gateways were seen to spell a response or a webhook
// other than usual.
type form struct {
	name    string
	request bool // for responses
	webhook bool
	// change changes the members of an object, which has a name unless it is the whole
	// body. The members' own values are changed before.
	change func(name string, members object) object
}

func forms() []form {
	return []form{
		{"fee-number", true, true, member("fee", func(v jsontext.Value) jsontext.Value { return feeNumber(v) })},
		{"fee-text", true, true, member("fee", func(v jsontext.Value) jsontext.Value { return quoted(feeNumber(v)) })},
		{"fee-object", true, true, member("fee", feeObject)},
		{"informations-object", true, true, member("informations", byKey)},
		{"amounts-text", true, true, amountsText},
		{"installments-text", true, true, member("installments", quoted)},
		{"three-ds-stage", true, false, member("next_action", withStage)},
		{"masked", true, false, masked},
		{"no-paid-amount", true, true, without("paid_amount", "paidAmount")},
		{"zero-paid-amount", true, true, zeroPaid},
		{"whole-seconds", true, false, wholeSeconds},
		{"stopped-updates", true, false, stopped},
		{"path-list", true, false, violations(pathList)},
		{"path-text", true, false, violations(pathText)},
		{"unrecognized-keys", true, false, violations(unrecognized)},
		{"kind-in-event", false, true, kindInEvent},
		{"status-only", false, true, statusOnly},
	}
}

// FormNames lists the forms of responses, or those of webhooks.
func FormNames(webhook bool) (names []string) {
	for _, f := range forms() {
		if f.request && !webhook || f.webhook && webhook {
			names = append(names, f.name)
		}
	}
	return names
}

// checkForms reports an unknown form in a comma-separated list.
func (k Kind) checkForms(list string) error {
	known := FormNames(k.Webhook())
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(known, name) {
			return fmt.Errorf("fault %s: the form %q is unknown; use one or more of %s, separated by commas", k, name, strings.Join(known, ","))
		}
	}
	return nil
}

// Shaped returns a JSON text in the given forms, a comma-separated list. A text that is
// not JSON is unchanged.
func Shaped(text []byte, list string) []byte {
	var chosen []form
	for _, f := range forms() {
		if slices.Contains(strings.Split(list, ","), f.name) {
			chosen = append(chosen, f)
		}
	}
	out, err := reshape(bytes.TrimSpace(text), "", chosen)
	if err != nil {
		return text
	}
	return out
}

// ShapedEvent is [Shaped] for a webhook. Events usually have no fee: if a form is about
// it, one about a transaction gets the transaction's.
func ShapedEvent(text []byte, list string, transaction bool, amount, fee int64) []byte {
	if transaction && strings.Contains(list, "fee-") {
		v := fmt.Appendf(nil, `{"net_amount":%d,"estimated_fee":%d}`, amount-fee, fee)
		add := form{change: func(name string, members object) object {
			if name == "data" {
				members = append(members, property{"fee", v})
			}
			return members
		}}
		if out, err := reshape(text, "", []form{add}); err == nil {
			text = out
		}
	}
	return Shaped(text, list)
}

// object has the members of a JSON object in their order.
type object []property

type property struct {
	name  string
	value jsontext.Value
}

// reshape applies the forms to every object of a value, the inner ones first. The
// members of metadata are the caller's own and stay.
func reshape(v jsontext.Value, name string, chosen []form) (jsontext.Value, error) {
	switch v.Kind() {
	case '{':
		members, err := readObject(v)
		if err != nil || name == "metadata" {
			return v, err
		}
		for i := range members {
			if members[i].value, err = reshape(members[i].value, members[i].name, chosen); err != nil {
				return nil, err
			}
		}
		for _, f := range chosen {
			members = f.change(name, members)
		}
		return members.bytes(), nil
	case '[':
		return eachElement(v, func(item jsontext.Value) (jsontext.Value, error) { return reshape(item, name, chosen) })
	default:
		if !v.IsValid(jsonread.Lenient) {
			return nil, errors.New("not JSON")
		}
		return v, nil
	}
}

func readObject(v jsontext.Value) (members object, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(v), jsonread.Lenient)
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		p := property{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		p.value = value.Clone()
		members = append(members, p)
	}
	_, err = d.ReadToken()
	return members, err
}

func (o object) bytes() jsontext.Value {
	b := []byte{'{'}
	for i, p := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, text(p.name)...), ':'), p.value...)
	}
	return append(b, '}')
}

// get returns the value of a member, nil if there is none.
func (o object) get(name string) jsontext.Value {
	for _, p := range o {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

func eachElement(v jsontext.Value, do func(jsontext.Value) (jsontext.Value, error)) (jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(v), jsonread.Lenient)
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	b := []byte{'['}
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if item, err = do(item.Clone()); err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']'), nil
}

func text(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, s) // the only possible error is invalid UTF-8, which is replaced
	return b
}

// quoted returns a number as text; other values stay.
func quoted(v jsontext.Value) jsontext.Value {
	if v.Kind() != '0' {
		return v
	}
	return text(string(v))
}

func unquoted(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v) // "" for another kind of value
	return string(b)
}

// member returns the change of the members with a name, unless they are null.
func member(name string, change func(jsontext.Value) jsontext.Value) func(string, object) object {
	return func(_ string, members object) object {
		for i := range members {
			if p := &members[i]; p.name == name && p.value.Kind() != 'n' {
				p.value = change(p.value)
			}
		}
		return members
	}
}

func without(names ...string) func(string, object) object {
	return func(_ string, members object) object {
		return slices.DeleteFunc(members, func(p property) bool { return slices.Contains(names, p.name) })
	}
}

// feeNumber returns what a fee's object says as its number.
func feeNumber(v jsontext.Value) jsontext.Value {
	if v.Kind() != '{' {
		return v
	}
	members, _ := readObject(v) // it was parsed before
	if fee := members.get("estimated_fee"); fee != nil {
		return fee
	}
	return jsontext.Value("0")
}

func feeObject(v jsontext.Value) jsontext.Value {
	members := object{{"net_amount", jsontext.Value("0")}, {"estimated_fee", v}}
	if v.Kind() == '{' {
		members, _ = readObject(v) // as above
	}
	return append(members, property{"spread_percentage", jsontext.Value("1.5")}).bytes()
}

// byKey turns a list of {key, value} into an object.
func byKey(v jsontext.Value) jsontext.Value {
	if v.Kind() != '[' {
		return v
	}
	var members object
	_, _ = eachElement(v, func(item jsontext.Value) (jsontext.Value, error) {
		info, err := readObject(item)
		members = append(members, property{unquoted(info.get("key")), info.get("value")})
		return item, err
	})
	return members.bytes()
}

func amountsText(_ string, members object) object {
	for i := range members {
		switch p := &members[i]; p.name {
		case "amount", "base_price", "paid_amount", "paidAmount", "refunded_amount", "refundedAmount", "net_amount", "price", "unit_price":
			p.value = quoted(p.value)
		}
	}
	return members
}

func withStage(v jsontext.Value) jsontext.Value {
	if v.Kind() != '{' {
		return v
	}
	members, _ := readObject(v) // as above
	return append(members, property{"three_ds_stage", text("post_charge")}).bytes()
}

// masked hides what identifies a person, as reads of some accounts do.
func masked(name string, members object) object {
	for i := range members {
		p := &members[i]
		if p.value.Kind() != '"' {
			continue
		}
		switch s := unquoted(p.value); {
		case p.name == "email" || p.name == "customer_email":
			local, host, _ := strings.Cut(s, "@")
			_, size := utf8.DecodeRuneInString(local)
			p.value = text(local[:size] + "***@" + host)
		case p.name == "phone", p.name == "document_number", name == "document" && p.name == "number", p.name == "document":
			p.value = text(stars(s))
		}
	}
	return members
}

// stars replaces all but the last two characters.
func stars(s string) string {
	runes := []rune(s)
	for i := range len(runes) - 2 {
		runes[i] = '*'
	}
	return string(runes)
}

func zeroPaid(_ string, members object) object {
	for i := range members {
		if p := &members[i]; p.name == "paid_amount" || p.name == "paidAmount" {
			zero := jsontext.Value("0")
			if p.value.Kind() == '"' {
				zero = text("0")
			}
			p.value = zero
		}
	}
	return members
}

// wholeSeconds is a gateway that counts seconds: two changes in one second have the
// same updated_at.
func wholeSeconds(_ string, members object) object {
	for i := range members {
		if p := &members[i]; isUpdatedAt(p.name) && p.value.Kind() == '"' {
			s := unquoted(p.value)
			if dot := strings.LastIndexByte(s, '.'); dot > 0 {
				p.value = text(s[:dot] + ".000Z")
			}
		}
	}
	return members
}

// stopped is a gateway that does not touch updated_at.
func stopped(_ string, members object) object {
	for i := range members {
		if p := &members[i]; isUpdatedAt(p.name) {
			created := members.get(strings.Replace(p.name, "updated", "created", 1))
			if created != nil {
				p.value = created
			}
		}
	}
	return members
}

func isUpdatedAt(name string) bool { return name == "updated_at" || name == "updatedAt" }

// violations changes each entry of a rejection that names a field.
func violations(change func(entry object, field string) object) func(string, object) object {
	return func(name string, members object) object {
		field := members.get("field")
		if name != "errors" && name != "validation_errors" || field.Kind() != '"' {
			return members
		}
		return change(slices.DeleteFunc(members, func(p property) bool { return p.name == "field" }), unquoted(field))
	}
}

// steps returns the JSON elements of a field's path: "products", 0, "name".
func steps(field string) (list []jsontext.Value) {
	for name := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if _, err := strconv.Atoi(name); err == nil {
			list = append(list, jsontext.Value(name))
		} else {
			list = append(list, text(name))
		}
	}
	return list
}

func array(list []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

func pathList(entry object, field string) object {
	return append(entry, property{"path", array(steps(field))})
}

func pathText(entry object, field string) object {
	return append(entry, property{"path", text(field)})
}

// unrecognized reports the member as one that the gateway doesn't know, in the path of
// its object.
func unrecognized(entry object, field string) object {
	list := steps(field)
	last := max(len(list)-1, 0)
	entry = slices.DeleteFunc(entry, func(p property) bool { return p.name == "code" })
	return append(entry,
		property{"code", text("unrecognized_keys")},
		property{"keys", array(list[last:])},
		property{"path", array(list[:last])},
	)
}

// kindInEvent is an event whose member event has the kind, instead of data.event_type.
func kindInEvent(name string, members object) object {
	if name != "" {
		return members
	}
	for i := range members {
		data := &members[i]
		if data.name != "data" || data.value.Kind() != '{' {
			continue
		}
		inner, _ := readObject(data.value) // as above
		if kind := inner.get("event_type"); kind != nil {
			data.value = without("event_type")("", inner).bytes()
			members = setMember(members, "event", kind)
		}
	}
	if kind := members.get("type"); kind != nil { // of a transfer
		members = setMember(without("type")("", members), "event", kind)
	}
	return members
}

// statusOnly is an event that says nothing of its kind.
func statusOnly(name string, members object) object {
	switch name {
	case "":
		return without("event", "type")(name, members)
	case "data":
		return without("event_type")(name, members)
	default:
		return members
	}
}

func setMember(members object, name string, value jsontext.Value) object {
	for i := range members {
		if members[i].name == name {
			members[i].value = value
			return members
		}
	}
	return append(members, property{name, value})
}
