package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// enums are the closed lists of the Go types in responses. If the two dialects
// differ the second one is the live dialect's.
func (d *document) enums() map[reflect.Type]spec.Set {
	states, transfers := spec.TransactionStatuses, spec.TransferStatuses
	if d.live {
		states, transfers = spec.LiveTransactionStatuses, spec.LiveTransferStatuses
	}
	return map[reflect.Type]spec.Set{
		reflect.TypeFor[gateway.TransactionStatus]():   states,
		reflect.TypeFor[gateway.TransferStatus]():      transfers,
		reflect.TypeFor[gateway.Method]():              spec.Methods,
		reflect.TypeFor[gateway.Currency]():            spec.BillingCurrencies, // of a subscription's transactions too
		reflect.TypeFor[gateway.PixKeyType]():          spec.PixKeyTypes,
		reflect.TypeFor[gateway.DeliveryStatus]():      spec.DeliveryStatuses,
		reflect.TypeFor[gateway.DocumentType]():        spec.CustomerDocumentTypes,
		reflect.TypeFor[gateway.CustomerStatus]():      spec.CustomerStatuses,
		reflect.TypeFor[gateway.SubscriptionStatus]():  spec.SubscriptionStatuses,
		reflect.TypeFor[gateway.SubscriptionMethod]():  spec.SubscriptionMethods,
		reflect.TypeFor[gateway.Interval]():            spec.Intervals,
		reflect.TypeFor[gateway.FailurePolicy]():       spec.FailurePolicies,
		reflect.TypeFor[gateway.AuthorizationStatus](): spec.AuthorizationStatuses,
		reflect.TypeFor[gateway.LinkStatus]():          spec.LinkStatuses,
		reflect.TypeFor[gateway.SessionStatus]():       spec.SessionStatuses,
		reflect.TypeFor[gateway.ItemType]():            spec.ItemTypes,
		reflect.TypeFor[legacy.PaymentStatus]():        spec.LegacyStatuses,
	}
}

// A response is described by two Go types: the mock's view defines which members
// are always present and which may be null, the client's type documents them.

// view returns the schema of a view; twin is the client's type, or nil.
func (d *document) view(t, twin reflect.Type, name string) *schema {
	t, twin = bare(t), bare(twin)
	if known, ok := d.views[t]; ok {
		return ref(known)
	}
	switch {
	case t == reflect.TypeFor[respond.Stamp](), t == reflect.TypeFor[time.Time]():
		return &schema{Type: oneOrAll{"string"}, Format: "date-time"}
	case t == reflect.TypeFor[jsontext.Value]():
		return anyObject()
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.viewStruct(t, twin, name)
	case reflect.Slice, reflect.Array:
		return &schema{Type: oneOrAll{"array"}, Items: d.view(t.Elem(), elem(twin), name)}
	case reflect.Map:
		return &schema{Type: oneOrAll{"object"}, Additional: d.view(t.Elem(), elem(twin), name)}
	case reflect.String:
		s := text("string")
		if set, ok := d.enums()[twin]; ok {
			s.Enum = slices.Collect(set.All())
		}
		return s
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &schema{Type: oneOrAll{"integer"}, Format: "int64"}
	case reflect.Float64:
		return text("number")
	case reflect.Bool:
		return text("boolean")
	default:
		panic(fmt.Sprintf("openapi: no schema for %v, %s", t, name))
	}
}

// viewStruct writes a component if the client has a type for it, and an inline
// object otherwise.
func (d *document) viewStruct(t, twin reflect.Type, name string) *schema {
	if t.NumField() == 0 && twin != nil {
		t = twin
	}
	out := text("object")
	if twin != nil && twin.Name() != "" {
		name = twin.Name()
		out.Description = d.typeText(twin)
	}
	if own, ok := ownNames[qualified(t)]; ok {
		name, out.Description = own.name, own.text
	}
	for f := range t.Fields() {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member == "-" || f.Tag.Get("dialect") == "live" && !d.live {
			continue
		}
		about := field(twin, member)
		sub := d.member(t, f, about, name)
		if strings.Contains(options, "string") {
			sub = &schema{Type: oneOrAll{"string"}, Pattern: "^[0-9]+$"}
		}
		if text := d.about(t, f, twin, about); text != "" {
			sub.Description = onTheWire(text, sub)
		}
		out.Properties.set(member, sub)
		if !strings.Contains(options, "omit") {
			out.Required = append(out.Required, member)
		}
	}
	if slices.Contains(closed, t.Name()) {
		out.Additional = closedObject
	}
	own := strings.ToUpper(t.Name()[:1]) + strings.TrimSuffix(t.Name()[1:], "View")
	switch {
	case twin != nil && twin.Name() != "":
	case d.byView:
		name = own
	default:
		return out
	}
	made := d.component(name, own, out)
	d.views[t] = strings.TrimPrefix(made.Ref, components)
	return made
}

// ownNames are the components of views that the client reads into a type with
// another shape.
var ownNames = map[string]struct{ name, text string }{ //nolint:gochecknoglobals // never changes
	"httpapi.transactionItem": {"TransactionSummary", "A transaction in a list. Amounts are in cents."},
	"deliver.customerView":    {"EventCustomer", "The buyer in an event."},
	"deliver.productView":     {"EventProduct", "A product in an event."},
	"deliver.chargeView":      {"ChargeData", "A charge of a subscription in an event. Amounts are in cents."},
	"deliver.transferView":    {"TransferData", "The data of a transfer's event, whether sent flat or under \"object\". Amounts are in cents."},
}

// closed are the views to which the interface adds no member.
var closed = []string{"voucherView"} //nolint:gochecknoglobals // never changes

// member returns the schema of a view's field.
func (d *document) member(t reflect.Type, f reflect.StructField, about *reflect.StructField, parent string) *schema {
	var twin reflect.Type
	if about != nil {
		twin = about.Type
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	var s *schema
	switch path := t.Name() + "." + name; {
	case f.Type.Kind() == reflect.Interface:
		s = d.open(path)
	case name == "id" && f.Type.Kind() == reflect.String && !d.byView:
		s = &schema{Type: oneOrAll{"string"}, Format: "uuid"}
	default:
		s = d.view(f.Type, twin, parent+camel(name))
	}
	if t.Name()+"."+name == "itemPayment.fee" { // listed-fee: the mock always sends one
		return orNull(s)
	}
	if t.PkgPath() == reflect.TypeFor[events.Event]().PkgPath() && name != "next_at" {
		return s // absent rather than null
	}
	if f.Type.Kind() == reflect.Pointer || f.Type == reflect.TypeFor[jsontext.Value]() ||
		f.Type == reflect.TypeFor[respond.Stamp]() && !slices.Contains(alwaysSet, name) {
		return orNull(s)
	}
	if s.Ref != "" { // a description is next to it
		return &schema{AllOf: []*schema{s}}
	}
	return s
}

// onTheWire corrects a comment about a Go field whose type differs from the
// member's: "" is null on the wire, and a number has no value in quotes.
func onTheWire(text string, s *schema) string {
	rest, quoted := strings.CutPrefix(text, `"`)
	switch {
	case !quoted:
		return text
	case slices.Contains(s.Type, "integer"):
		return ""
	case strings.HasPrefix(rest, `"`) && s.nullable():
		return "Null" + rest[1:]
	}
	return text
}

// alwaysSet are the timestamps that are never null.
var alwaysSet = []string{"created_at", "updated_at", "createdAt", "updatedAt", "occurred_at", "generateTime", "now", "at"} //nolint:gochecknoglobals // never changes

// open returns the schemas of the members without a Go type.
func (d *document) open(path string) *schema {
	switch path {
	case "transactionView.metadata":
		if d.live {
			return &schema{Type: oneOrAll{"object", "null"}, Additional: text("string")}
		}
		return orNull(text("string"))
	case "transferView.amount":
		if d.live {
			return &schema{Type: oneOrAll{"string"}, Pattern: "^[0-9]+$"}
		}
		return &schema{Type: oneOrAll{"integer"}, Format: "int64"}
	}
	panic("openapi: what may " + path + " be?")
}

// about returns the comment on a member: the client's, or else the view's.
func (d *document) about(t reflect.Type, f reflect.StructField, twin reflect.Type, about *reflect.StructField) string {
	if text := d.fieldText(twin, about); text != "" {
		return text
	}
	return d.fieldText(t, &f)
}

// closedObject forbids members that a schema does not name.
var closedObject = jsontext.Value("false") //nolint:gochecknoglobals // never changes

func (d *document) typeText(t reflect.Type) string {
	return d.comments.onTheWire(d.comments.types[qualified(bare(t))], t)
}

func (d *document) fieldText(t reflect.Type, f *reflect.StructField) string {
	if f == nil {
		return ""
	}
	return d.comments.onTheWire(withoutName(d.comments.fields[qualified(bare(t))+"."+f.Name], f.Name), t)
}

// component files a schema under a name, or under another one if that is
// taken by a different schema, and returns a reference to it.
func (d *document) component(name, other string, s *schema) *schema {
	for _, name := range []string{name, other} {
		old, taken := d.schemas.get(name)
		if !taken {
			d.schemas.set(name, s)
		}
		if !taken || same(old, s) {
			return ref(name)
		}
	}
	panic("openapi: two components are called " + other)
}

func same(a, b any) bool {
	x, err := encode(a)
	if err != nil {
		panic(err)
	}
	y, err := encode(b)
	return err == nil && string(x) == string(y)
}

func bare(t reflect.Type) reflect.Type {
	for t != nil && (t.Kind() == reflect.Pointer || strings.HasPrefix(t.Name(), "Opt[")) {
		if t.Kind() != reflect.Pointer {
			get, _ := t.MethodByName("Get")
			t = get.Type.Out(0)
			continue
		}
		t = t.Elem()
	}
	return t
}

func elem(t reflect.Type) reflect.Type {
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		return t.Elem()
	}
	return nil
}

// field returns the field of t with a name on the wire, nil if there is none.
func field(t reflect.Type, name string) *reflect.StructField {
	if t = bare(t); t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		wire, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if query, _, ok := strings.Cut(f.Tag.Get("url"), ","); ok || query != "" {
			wire = query
		}
		if wire == name || f.PkgPath == "" && snake(f.Name) == name { // events are in snake case, and their types have no tags or camel case
			return &f
		}
	}
	return nil
}

// wireName returns the name on the wire of a field of t, "" if it has none.
func wireName(t reflect.Type, field string) string {
	if t = bare(t); t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	f, ok := t.FieldByName(field)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// snake writes a Go name as a name on the wire: "PaidAt" is "paid_at".
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' && (name[i-1] < 'A' || name[i-1] > 'Z') {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}

// camel writes a name on the wire as a type's: "near_misses" is "NearMisses".
func camel(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return strings.ContainsRune("_-./{}", c) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func qualified(t reflect.Type) string {
	if t == nil {
		return ""
	}
	pkg := t.PkgPath()
	return pkg[strings.LastIndexByte(pkg, '/')+1:] + "." + t.Name()
}
