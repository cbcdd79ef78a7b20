package spec_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// values are test values of one member, as JSON or, in a query, verbatim.
// Every allowed value passes, and every rejected one breaks only this member's
// rule, with its code. It is an [edge] with several values.
type values struct {
	field    string // "products[0].name"
	allowed  []string
	rejected []rejection
	reported string // the field of the violation, if it differs from field
}

type rejection struct{ value, code string }

// checkValues tries each value in an otherwise valid body.
func checkValues(t *testing.T, rule spec.Rule, v spec.Variant, base string, members []values) {
	t.Helper()
	find := func(body string) []spec.Violation {
		found, err := spec.Check([]byte(body), rule, v)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, find(base), "the base body must be valid")
	for _, m := range members {
		for _, value := range m.allowed {
			assert.Empty(t, find(edit(t, base, m.field, value)), "%s allowed: %s", m.field, shorten(value))
		}
		for _, r := range m.rejected {
			checkRejected(t, m, r, find(edit(t, base, m.field, r.value)))
		}
	}
}

// checkQueryValues tries each value as the only parameter of a query.
func checkQueryValues(t *testing.T, rule spec.Rule, members []values) {
	t.Helper()
	require.Empty(t, spec.CheckQuery(url.Values{}, rule, spec.Variant{}), "no parameters")
	for _, m := range members {
		for _, value := range m.allowed {
			found := spec.CheckQuery(url.Values{m.field: {value}}, rule, spec.Variant{})
			assert.Empty(t, found, "%s allowed: %s", m.field, shorten(value))
		}
		for _, r := range m.rejected {
			checkRejected(t, m, r, spec.CheckQuery(url.Values{m.field: {r.value}}, rule, spec.Variant{}))
		}
	}
}

func checkRejected(t *testing.T, m values, r rejection, found []spec.Violation) {
	t.Helper()
	field := m.reported
	if field == "" {
		field = m.field
	}
	if assert.Len(t, found, 1, "%s rejected: %s", m.field, shorten(r.value)) {
		assert.Equal(t, field, found[0].Field, "%s rejected: %s", m.field, shorten(r.value))
		assert.Equal(t, r.code, found[0].Code, "%s rejected: %s", m.field, shorten(r.value))
		assert.NotEmpty(t, found[0].Message)
	}
}

// httpsURL returns the JSON of an https URL of n characters.
func httpsURL(n int) string {
	const start = "https://shop.example/"
	return `"` + start + strings.Repeat("a", n-len(start)) + `"`
}

// notA returns a rejected value of every type except want: a string member
// rejects numbers, objects and so on.
func notA(want string, more ...rejection) []rejection {
	var out []rejection
	for _, v := range [...]struct{ kind, value string }{
		{"string", `"text"`},
		{"integer", `7`},
		{"object", `{}`},
		{"array", `[]`},
		{"boolean", `true`},
	} {
		if v.kind != want {
			out = append(out, rejection{v.value, spec.CodeInvalidType})
		}
	}
	if want == "integer" {
		out = append(out, rejection{`1.5`, spec.CodeInvalidType})
	}
	return append(out, more...)
}

// null rejects null.
func null() rejection { return rejection{`null`, spec.CodeInvalidType} }

// absent rejects a body without the member.
func absent() rejection { return rejection{missing, spec.CodeRequired} }

// enum returns the values of a member that accepts only those of s.
func enum(field string, s spec.Set) values {
	m := values{field: field, rejected: []rejection{
		{`""`, spec.CodeInvalidEnum},
		{`"no such value"`, spec.CodeInvalidEnum},
	}}
	for v := range s.All() {
		m.allowed = append(m.allowed, `"`+v+`"`)
		if other := flipCase(v); !s.Has(other) {
			m.rejected = append(m.rejected, rejection{`"` + other + `"`, spec.CodeInvalidEnum})
		}
	}
	return m
}

func flipCase(s string) string {
	if upper := strings.ToUpper(s); upper != s {
		return upper
	}
	return strings.ToLower(s)
}

// A violation must not refer to the body, which the caller may reuse.
func TestViolationsOutliveTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"cvv":1,"made_up":{"card_number":1},"list":[{"pan":1}]}`)
	found, err := spec.Check(body, func(*spec.Object) {}, spec.Variant{})
	require.NoError(t, err)
	clear(body)
	var fields []string
	for _, v := range found {
		fields = append(fields, v.Field)
	}
	assert.Equal(t, []string{"cvv", "made_up.card_number", "list[0].pan"}, fields)
}
