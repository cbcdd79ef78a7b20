package openapi

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is a JSON Schema of the dialect that OpenAPI 3.1 uses.
type schema struct {
	Ref         string   `json:"$ref,omitzero"`
	Type        oneOrAll `json:"type,omitzero"`
	Format      string   `json:"format,omitzero"`
	Description string   `json:"description,omitzero"`
	Const       any      `json:"const,omitempty"`
	Enum        []string `json:"enum,omitzero"`
	Pattern     string   `json:"pattern,omitzero"`
	MinLength   int      `json:"minLength,omitzero"`
	MaxLength   *int     `json:"maxLength,omitzero"`
	Minimum     *number  `json:"minimum,omitzero"`
	Maximum     *number  `json:"maximum,omitzero"`
	MinItems    int      `json:"minItems,omitzero"`
	MaxItems    *int     `json:"maxItems,omitzero"`
	Items       *schema  `json:"items,omitzero"`

	Required      []string         `json:"required,omitzero"`
	Properties    named[*schema]   `json:"properties,omitzero"`
	Additional    any              `json:"additionalProperties,omitempty"` // a boolean, or a *schema
	PropertyNames *schema          `json:"propertyNames,omitzero"`
	AllOf         []*schema        `json:"allOf,omitzero"`
	AnyOf         []*schema        `json:"anyOf,omitzero"`
	Not           *schema          `json:"not,omitzero"`
	If            *schema          `json:"if,omitzero"`
	Then          *schema          `json:"then,omitzero"`
	Examples      []jsontext.Value `json:"examples,omitzero"`
}

// oneOrAll is written as a string if it holds one.
type oneOrAll []string

// MarshalJSONTo implements json.MarshalerTo.
func (t oneOrAll) MarshalJSONTo(enc *jsontext.Encoder) error {
	if len(t) == 1 {
		return json.MarshalEncode(enc, t[0])
	}
	return json.MarshalEncode(enc, []string(t))
}

// number is written without an exponent: limits are cents and characters.
type number float64

// MarshalJSONTo implements json.MarshalerTo.
func (n number) MarshalJSONTo(enc *jsontext.Encoder) error {
	if i := int64(n); number(i) == n {
		return json.MarshalEncode(enc, i)
	}
	return json.MarshalEncode(enc, float64(n))
}

// named is an object whose members keep their order.
type named[T any] []entry[T]

type entry[T any] struct {
	name  string
	value T
}

// MarshalJSONTo implements json.MarshalerTo.
func (n named[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, e := range n {
		if err := enc.WriteToken(jsontext.String(e.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, e.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func (n named[T]) get(name string) (T, bool) {
	for _, e := range n {
		if e.name == name {
			return e.value, true
		}
	}
	var none T
	return none, false
}

func (n *named[T]) set(name string, value T) {
	for i, e := range *n {
		if e.name == name {
			(*n)[i].value = value
			return
		}
	}
	*n = append(*n, entry[T]{name, value})
}

func (n named[T]) sort() {
	slices.SortFunc(n, func(a, b entry[T]) int { return cmp.Compare(a.name, b.name) })
}

// object is a part of the document other than a schema.
type object = named[any]

// obj returns an object of name and value pairs.
func obj(pairs ...any) object {
	var o object
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, entry[any]{pairs[i].(string), pairs[i+1]}) //nolint:forcetypeassert,gosec // pairs, written in this package
	}
	return o
}

func text(kind string) *schema { return &schema{Type: oneOrAll{kind}} }

// anyObject accepts every object. It says so because generators read an object
// without members as one that must be empty.
func anyObject() *schema {
	return &schema{Type: oneOrAll{"object"}, Additional: jsontext.Value("true")}
}

func ref(name string) *schema { return &schema{Ref: components + name} }

// components is where references to schemas begin.
const components = "#/components/schemas/"

// nullable reports whether s accepts null.
func (s *schema) nullable() bool {
	return slices.Contains(s.Type, "null") || slices.ContainsFunc(s.AnyOf, (*schema).nullable)
}

// orNull lets a schema be null too.
func orNull(s *schema) *schema {
	switch {
	case len(s.AllOf) == 1 && s.AllOf[0].Ref != "" && len(s.Type) == 0:
		return &schema{Description: s.Description, AnyOf: []*schema{s.AllOf[0], text("null")}}
	case len(s.AnyOf) > 0:
		s.AnyOf = append(s.AnyOf, text("null"))
		return s
	case s.Ref != "":
		return &schema{AnyOf: []*schema{s, text("null")}}
	case len(s.AllOf) > 0 && len(s.Type) == 0, len(s.Enum) > 0:
		about := s.Description
		s.Description = ""
		return &schema{Description: about, AnyOf: []*schema{s, text("null")}}
	case !slices.Contains(s.Type, "null"):
		s.Type = append(s.Type, "null")
	}
	return s
}
