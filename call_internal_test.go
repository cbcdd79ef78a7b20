package gateway

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/transport"
	"github.com/gateway-go/gateway/internal/wire"
)

func TestOnlyReadsHaveNoBody(t *testing.T) {
	t.Parallel()
	for method, read := range map[string]bool{
		http.MethodGet: true, http.MethodHead: true, http.MethodOptions: true,
		http.MethodPost: false, http.MethodPut: false, http.MethodPatch: false, http.MethodDelete: false,
	} {
		assert.Equal(t, read, isRead(method), method)
	}
}

func TestARejectedPathElementHasACodeAndARule(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]FieldError{
		" ":                       {"slug", "is required: pass the slug as the gateway returned it", spec.CodeRequired},
		"..":                      {"slug", "must not be a relative path: pass the slug as the gateway returned it", spec.CodeInvalid},
		"a/b":                     {"slug", "must not contain slashes or control characters: pass the slug alone, not a path", spec.CodeInvalid},
		"abc\x7f":                 {"slug", "must not contain slashes or control characters: pass the slug alone, not a path", spec.CodeInvalid},
		"ab":                      {"slug", "must have at least 3 characters", spec.CodeTooSmall},
		"x" + stringOf('y', 0xff): {"slug", "must have at most 255 characters", spec.CodeTooBig},
	} {
		var e *ValidationError
		require.ErrorAs(t, checkPathElement("op", "slug", value), &e, value)
		assert.Equal(t, []FieldError{want}, e.Fields)
	}
}

func stringOf(r rune, n int) string {
	s := make([]rune, n)
	for i := range s {
		s[i] = r
	}
	return string(s)
}

func TestAnEscapedBaseURLStaysEscaped(t *testing.T) {
	t.Parallel()
	base, err := url.Parse("https://api.example.com/a%2Fb")
	require.NoError(t, err)
	c := &Client{base: base}
	u, err := c.resolve(&spec.Operation{Path: "/v2/transactions"}, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "https://api.example.com/a%2Fb/v2/transactions", u.String())
	u, err = c.resolve(&spec.Operation{Path: "/v2/transactions/{id}/refund"}, []string{"x y"}, nil)
	require.NoError(t, err)
	assert.Equal(t, "https://api.example.com/a%2Fb/v2/transactions/x%20y/refund", u.String())
}

func TestAResponseWithoutItsResourceNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for want, resources := range map[string][]any{
		"the response has no id": {&Transaction{}, &listedTransaction{}, &Transfer{}, &Customer{}, &Subscription{}},

		"the response has no transaction.id":  {&sandboxResponse{}},
		"the response has no url":             {&CheckoutLink{}},
		"the response has no status":          {&Delivery{}, &CheckoutSessionState{}},
		"the response has no amount_refunded": {&Refund{}},
		"the response has no session_token":   {&CheckoutSession{}},
	} {
		for _, resource := range resources {
			require.EqualError(t, checkIdentity(resource), want, "%T", resource)
		}
	}
	require.EqualError(t, checkIdentities([]Transfer{{ID: "a"}, {}}), "item 2 of the list: the response has no id")
	assert.Equal(t, "12", idOf(&Refund{AmountRefunded: 12}))
}

func TestLogValuesUseTheDocumentedNames(t *testing.T) {
	t.Parallel()
	e := &Error{Op: "x", StatusCode: 409, Code: "C", RequestID: "r", Reference: "o", Attempts: 2}
	assert.Equal(t, []slog.Attr{
		slog.String("op", "x"), slog.Int("status", 409), slog.String("code", "C"), slog.String("request_id", "r"),
		slog.String("reference", "o"), slog.Int("attempts", 2), slog.String("error", e.Error()),
	}, e.LogValue().Group())
	o := &OutcomeError{Op: "x", Reference: "o", IdempotencyKey: "k", ResourceID: "i"}
	assert.Equal(t, []slog.Attr{
		slog.String("op", "x"), slog.String("reference", "o"), slog.String("idempotency_key", "k"),
		slog.String("resource_id", "i"), slog.String("error", o.Error()),
	}, o.LogValue().Group())
	require.EqualError(t, o, "gateway: x: the outcome is unknown, the response names the resource i [idempotency key k]")
	require.EqualError(t, &Error{Op: "x", RetryAfter: 1}, "gateway: x [retry after 1ns]")
}

func TestStatusesOfSuccessesAndValidationErrors(t *testing.T) {
	t.Parallel()
	for status, success := range map[int]bool{199: false, 200: true, 299: true, 300: false} {
		assert.Equal(t, success, isSuccess(status), status)
	}
	for status, want := range map[int]error{399: ErrServer, 400: ErrValidation, 408: ErrServer, 499: ErrValidation, 500: ErrServer} {
		require.ErrorIs(t, &Error{StatusCode: status}, want, status)
	}
}

// The gateway may have applied a write even if its 2xx response is too long to be
// read.
func TestAWriteWithATruncatedSuccessHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	client, err := New("https://api.example.com", APIKey("k"))
	require.NoError(t, err)
	r := &request{client: client, op: &spec.Operation{Name: "x", Method: http.MethodPost}}
	res := &transport.Result{Status: 200, Err: errors.New("too long")}
	require.ErrorIs(t, r.failure(res), ErrOutcomeUnknown)
	err = r.undecodable(&transport.Result{Status: 200}, errors.New("boom"))
	require.ErrorIs(t, err, ErrOutcomeUnknown)
	require.ErrorContains(t, err, "boom")
	r.op = &spec.Operation{Name: "x", Method: http.MethodGet}
	require.ErrorIs(t, r.failure(res), ErrServer, "a read")
}

func TestAnErrorKeepsUsefulPartsOfAResponseAndHidesTheRest(t *testing.T) {
	t.Parallel()
	shown := []string{
		"Allow", "Content-Type", "Date", "Etag", "Retry-After", "Server", "Via", "X-Request-Id",
		"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	}
	header := http.Header{"Set-Cookie": {"x"}, "Apikey": {"x"}}
	want := http.Header{}
	for _, name := range shown {
		header[name], want[name] = []string{name}, []string{name}
	}
	assert.Equal(t, want, allowedHeader(header))
	assert.Empty(t, allowedHeader(http.Header{"Set-Cookie": {"a=b"}}))

	r := &request{op: &spec.Operation{Name: "x", Method: http.MethodPost}, key: "k"}
	e := r.newError(&transport.Result{Status: 409, Body: []byte("x"), Definite: true}, wire.Problem{Code: "IDEMPOTENCY_KEY_REUSED", Title: "T", Detail: "D"})
	assert.Equal(t, "x", string(e.Body))
	assert.Equal(t, "D", e.Detail, "the gateway's own detail is kept")
	e = r.newError(&transport.Result{Status: 409, Definite: true}, wire.Problem{Code: "IDEMPOTENCY_KEY_REUSED", Title: "T", Detail: "T"})
	assert.Contains(t, e.Detail, "the idempotency key k was used before")

	const secret = "Bearer abcdefgh"
	e = &Error{
		Title: secret, Detail: secret, Fields: []FieldError{{secret, secret, secret}}, Header: http.Header{"Via": {secret}},
		Err: errors.New(secret),
	}
	e.conceal(&transport.Secrets{{secret}})
	for _, text := range []string{e.Title, e.Detail, e.Fields[0].Field, e.Fields[0].Message, e.Fields[0].Code, e.Header.Get("Via"), e.Err.Error()} {
		assert.NotContains(t, text, "abcdefgh")
	}
}

func TestParamsThatCannotBeSentAreRejected(t *testing.T) {
	t.Parallel()
	rule := func(*spec.Object) {}
	require.ErrorContains(t, validate(map[string]any{"x": make(chan int)}, rule), "chan int")
	require.Error(t, validate([]int{1}, rule), "not an object")
	require.Error(t, (&request{op: &spec.Operation{}}).encodeBody(map[string]any{"x": make(chan int)}))

	type params struct {
		Names  []string `url:"names,comma"`
		Plain  []string `url:"plain"`
		Counts []int    `url:"counts,comma"`
	}
	_, err := queryOf("x", &params{Names: []string{"a", "b,c"}, Plain: []string{"d,e"}, Counts: []int{1, 2}})
	var e *ValidationError
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Fields, 1)
	assert.Equal(t, "names[1]", e.Fields[0].Field)
	assert.Equal(t, spec.CodeInvalid, e.Fields[0].Code)
	_, err = queryOf("x", 5)
	require.ErrorContains(t, err, "query: ")
}

func TestMaskingOfGatewayText(t *testing.T) {
	t.Parallel()
	const cpf, masked = "52998224725", "***"
	for text, want := range map[string]string{
		"sk_test_a-B_1.": "sk_test_….", "sk_live_a": "sk_live_…", "pk_test_a": "pk_test_…", "pk_live_a": "pk_live_…",
		"pgct_a": "pgct_…", "pgpm_a": "pgpm_…", "sk_a": "sk_a",

		cpf: masked, "529.982.247-25": masked, "12.345.678/0001-95": masked, "4111 1111 1111 1111": masked, "00000000000": masked,
		"99999999999": masked, "1-2345678901": masked, "5299822472": "5299822472", "5299822472:": "5299822472:",
		"5299822472x5": "5299822472x5", "5299822472--5": "5299822472--5",
		"CPF " + cpf + " is known": "CPF " + masked + " is known",
	} {
		assert.Equal(t, want, masking.Message(text), text)
	}
	for _, c := range []string{"_", "-", "a", "m", "z", "A", "M", "Z"} {
		assert.Equal(t, c+cpf, masking.Message(c+cpf), "inside a word")
		assert.Equal(t, " "+c+cpf, masking.Message(" "+c+cpf), "inside a word")
		assert.Equal(t, cpf+c, masking.Message(cpf+c), "inside a word")
	}
	for _, c := range []string{"`", "{", "@", "[", "^", "/", ":", ",", "."} {
		assert.Equal(t, c+masked, masking.Message(c+cpf))
		assert.Equal(t, masked+c, masking.Message(cpf+c))
	}
}

func TestAFailedSearchDoesNotChangeTheKindOfTheCreateError(t *testing.T) {
	t.Parallel()
	before, searched := errors.New("reset"), &Error{Op: "transactions.list", StatusCode: 404}
	l := lookUpError{before, errors.Join(searched, http.ErrHandlerTimeout)}
	require.ErrorIs(t, l, before)
	require.ErrorIs(t, l, http.ErrHandlerTimeout)
	require.NotErrorIs(t, l, ErrNotFound)
	require.NotErrorIs(t, l, http.ErrAbortHandler)
	require.EqualError(t, lookUpError{before, errors.New("gateway: x")}, "reset; x")
	require.EqualError(t, lookUpError{nil, errors.New("gateway: x")}, "x")

	for path, id := range map[string]string{
		"/v2/t/abc": "abc", "/v2/t/a%20b": "a b", "/v2/t/a%2Fb": "", "/v2/t/%zz": "", "/v2/t/..": "", "/v2/u/abc": "", "": "",
	} {
		assert.Equal(t, id, idIn(path, "/v2/t"), path)
	}
}

func TestASearchContinuesWhileItemsAreNewerThanTheCall(t *testing.T) {
	t.Parallel()
	type item struct {
		id  string
		age time.Duration
	}
	now := time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)
	search := func(reference string, pages ...[]item) (string, error) {
		return searchNewest(func(yield func(*Page[item], error) bool) {
			for _, p := range pages {
				if !yield(&Page[item]{Items: p}, nil) {
					return
				}
			}
		}, time.Hour, reference, func(i *item) (string, string, time.Time) { return i.id, i.id, now.Add(-i.age) })
	}
	_, err := search("z", []item{{"a", 0}, {"b", 1}}, []item{{"c", 2}})
	require.EqualError(t, err, "no resource with the reference was found (3 checked)")
	id, err := search("z", []item{{"a", 0}, {"b", time.Hour + time.Minute}}, []item{{"z", 3 * time.Hour}})
	require.NoError(t, err)
	assert.Equal(t, "z", id)
	_, err = search("z", []item{{"a", 0}, {"b", time.Hour + time.Minute + 1}}, []item{{"z", 3 * time.Hour}})
	require.EqualError(t, err, "no resource with the reference was found (2 checked)")
}

func TestABodyFieldPrecedesTheOtherFields(t *testing.T) {
	t.Parallel()
	r := &request{op: &spec.Operation{}, client: &Client{}}
	r.splice("a", []byte("1"))
	assert.JSONEq(t, `{"a":1}`, string(r.body))
	r.splice("b", []byte("2"))
	assert.Equal(t, `{"b":2,"a":1}`, string(r.body))
	r.o.body = []bodyField{{"c", []byte("3")}, {"c", []byte("4")}}
	require.ErrorContains(t, r.encodeBody(nil), "c", "a duplicate is rejected even without a rule")
}

// If the JSON package decoded list items, a list would take twice the time.
func TestListItemsAreDecodedByAPlan(t *testing.T) {
	t.Parallel()
	assert.True(t, jsonread.HasPlan[listedItem]())
}
