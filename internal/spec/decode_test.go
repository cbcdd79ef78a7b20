package spec_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
)

// decoded checks body and reads it into v.
func decoded(t *testing.T, body string, rule spec.Rule, v any) {
	t.Helper()
	d, err := spec.Parse([]byte(body))
	require.NoError(t, err)
	defer d.Release()
	require.Empty(t, d.Check(rule, spec.Variant{}), body)
	require.NoError(t, d.Decode(v))
}

// TestValuesInAnyNotationAreDecoded has a rule that checks the members in a
// different order than the bodies have them, and one of them twice.
func TestValuesInAnyNotationAreDecoded(t *testing.T) {
	t.Parallel()
	rule := func(o *spec.Object) {
		o.String("at", spec.Nullable).Time()
		o.Array("days", spec.Optional).EachInt(0, 100)
		o.Int("count", spec.Nullable)
		o.Int("amount", spec.Optional)
		o.String("at", spec.Nullable).Time()
	}
	type target struct {
		Amount int64             `json:"amount"`
		Days   []int             `json:"days"`
		At     time.Time         `json:"at,omitzero"`
		Count  int               `json:"count"`
		Names  map[string]string `json:"names"`
	}
	noon := time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)
	for body, want := range map[string]target{
		`{"amount":1.5e4}`: {Amount: 15000},
		`{"amount":15}`:    {Amount: 15},
		`{"amount":1.5e4,"days":[3e1,5,12.0],"at":"2027-01-04t12:00:00z","count":20.0}`: {15000, []int{30, 5, 12}, noon, 20, nil},
		`{"count":1e2,"at":"2027-01-04t12:00:00z","days":[1],"amount":2e2}`:             {200, []int{1}, noon, 100, nil},
		`{"names":{"a":"b"},"amount":7}`:                                                {Amount: 7, Names: map[string]string{"a": "b"}},
		`{"names":{"a":"b"},"amount":7e0}`:                                              {Amount: 7, Names: map[string]string{"a": "b"}},
		`{"amount":1e1,"at":null,"count":null}`:                                         {Amount: 10},
		`{}`:                                                                            {},
	} {
		var got target
		decoded(t, body, rule, &got)
		assert.Equal(t, want, got, body)
	}
	var whole map[string]any
	decoded(t, `{"amount":7,"names":{"a":null}}`, rule, &whole)
	assert.Equal(t, map[string]any{"amount": 7.0, "names": map[string]any{"a": nil}}, whole)
}

func TestAValueOfTheWrongTypeIsNotDecoded(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"amount":"x"}`, `{"amount":"x","count":1e3}`} {
		d, err := spec.Parse([]byte(body))
		require.NoError(t, err)
		defer d.Release()
		require.Empty(t, d.Check(func(o *spec.Object) { o.Int("count", spec.Optional) }, spec.Variant{}))
		var in struct {
			Amount int64 `json:"amount"`
		}
		require.ErrorContains(t, d.Decode(&in), "/amount", body)
	}
}

func TestANumberThatIsNoIntegerIsNotDecoded(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"amount":1.5}`, `{"amount":1e30}`, `{"amount":1e-1}`} {
		d, err := spec.Parse([]byte(body))
		require.NoError(t, err)
		defer d.Release()
		var in struct {
			Amount int64 `json:"amount"`
		}
		require.ErrorContains(t, d.Decode(&in), "/amount", body)
	}
}

// Both spellings of a timestamp are read by the JSON package, which is stricter than
// Go's time package.
func TestATimestampThatIsNotRFC3339IsNotDecoded(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"at":"2027-01-04T12:00:00,5Z"}`, `{"at":"2027-01-04t12:00:00,5z"}`, `{"at":"2027-01-04t2:00:00z"}`, `{"at":"2027-01-04t12:00:00+24:00"}`,
	} {
		d, err := spec.Parse([]byte(body))
		require.NoError(t, err)
		defer d.Release()
		var in struct {
			At time.Time `json:"at"`
		}
		require.ErrorContains(t, d.Decode(&in), "/at", body)
	}
}

func TestAReusedDocumentHasNoStateOfThePreviousBody(t *testing.T) {
	t.Parallel()
	rule := func(o *spec.Object) { o.Int("amount", spec.Required) }
	for range 100 {
		var first, second struct {
			Amount int64 `json:"amount"`
		}
		decoded(t, `{"amount":1e3}`, rule, &first)
		decoded(t, `{"amount":20000}`, rule, &second)
		require.Equal(t, [2]int64{1000, 20000}, [2]int64{first.Amount, second.Amount})
	}
	var inUse []*spec.Document
	for range 50 {
		d, err := spec.Parse([]byte(`{}`))
		require.NoError(t, err)
		inUse = append(inUse, d)
	}
	for _, d := range inUse {
		d.Release()
	}
}

func TestFieldPaths(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"": "", "/a": "a", "/a/b": "a.b", "/products/0/name": "products[0].name", "/a/10": "a[10]", "/a/1?/b": "a.1?.b", "/a//b": "a..b",
	} {
		assert.Equal(t, want, spec.FieldPath(jsontext.Pointer(pointer)), pointer)
	}
}

func TestRepeatedParametersAreJoined(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a,b,c", spec.Joined([]string{"a", "", "b,c"}))
	assert.Empty(t, spec.Joined(nil))
}

func TestAnInvalidParameterDoesNotHideOtherViolations(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]url.Values{
		"an invalid value": {"cursor": {"\xff"}}, "an invalid name": {"\xff": {"1"}}, "two invalid names": {"\xff": {"1"}, "\xfe": {"2"}},
	} {
		other.Set("limit", "0")
		found := spec.CheckQuery(other, spec.TransactionList, spec.Variant{})
		if assert.Len(t, found, 1, name) {
			assert.Equal(t, "limit", found[0].Field, name)
			assert.Equal(t, spec.CodeTooSmall, found[0].Code, name)
		}
	}
}

func TestAQueryWithTooManyParametersIsRejected(t *testing.T) {
	t.Parallel()
	many := url.Values{"limit": {"0"}}
	for i := range 1 << 17 {
		many[strconv.Itoa(i)] = nil
	}
	assert.Equal(t, []spec.Violation{{Message: "the query has too many parameters", Code: spec.CodeInvalid}},
		spec.CheckQuery(many, spec.TransactionList, spec.Variant{}))
}

func TestOnlyDigits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "0119876543219", spec.OnlyDigits("/0:(11) 98765-4321é９9"))
}

// The same query gives the same violations in the same order, and no parameter
// escapes the rules because its name in valid UTF-8 is another's.
func TestTheViolationsOfAQueryHaveAnOrder(t *testing.T) {
	t.Parallel()
	const number = "4111111111111111"
	for range 50 {
		var fields []string
		for _, v := range spec.CheckQuery(url.Values{"b": {number}, "a": {number}, "d": {number}, "c": {number}}, spec.TransactionList, spec.Variant{}) {
			fields = append(fields, v.Field)
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, fields)
		same := url.Values{"\xff": {number}, "\xfe": {"1"}, "\xfd": {"2"}}
		assert.Len(t, spec.CheckQuery(same, spec.TransactionList, spec.Variant{}), 1)
	}
}
