package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
)

// mistakes returns a request to op that breaks a rule in every part that has
// one: the path, the idempotency key, the query or the body. It also returns
// the fields that the response must name, in their order.
func mistakes(t *testing.T, op spec.Operation, dialect string) (r *http.Request, m *mock, fields []string) {
	t.Helper()
	path, body, header := op.Path, "", []string{}
	i := slices.IndexFunc(writes(t), func(w write) bool { return w.name == op.Name })
	if i < 0 {
		m = newMock(t, dialects[dialect])
	} else {
		p := writes(t)[i].prepare(t, dialect)
		m, header = p.m, p.header
		body = golden.Edit(t, p.body, "cvv", `"123"`) // card data, which every body rejects
	}
	if strings.Contains(path, "{id}") && dialect == "live" {
		path, fields = strings.Replace(path, "{id}", "42", 1), append(fields, "id")
	}
	if strings.Contains(path, "{slug}") {
		path, fields = strings.Replace(path, "{slug}", "ab", 1), append(fields, "slug")
	}
	if body != "" {
		if dialect == "live" && op.Method != http.MethodPatch {
			header, fields = append(header, "Idempotency-Key", strings.Repeat("k", 256)), append(fields, "Idempotency-Key")
		}
		fields = append(fields, "cvv")
	}
	if op.Method == http.MethodGet && op.Rule != nil {
		if op.Numbered {
			path, fields = path+"?page=0&limit=0", append(fields, "page", "limit")
		} else {
			path, fields = path+"?limit=0&status=lost&cursor=lost", append(fields, "limit", "status", "cursor")
		}
	}
	return m.request(op.Method, path, body, header...), m, fields
}

func TestEveryPartOfARequestIsCheckedAtOnce(t *testing.T) {
	t.Parallel()
	for op := range spec.Operations() {
		for dialect := range dialects {
			t.Run(op.Name+" "+dialect, func(t *testing.T) {
				t.Parallel()
				r, m, want := mistakes(t, op, dialect)
				if len(want) == 0 {
					t.Skip("the request has no part with a rule")
				}
				assert.Equal(t, want, m.serve(r).fields())
			})
		}
	}
}

// fields returns the fields that an error names.
func (a response) fields() []string {
	a.t.Helper()
	require.Contains(a.t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, a.Status, string(a.Body))
	var names []string
	if a.Header.Get("Content-Type") == "application/json" && !slices.Contains(a.keysOfBody(), "errors") { // {error, message, status}
		for part := range strings.SplitSeq(a.text("message"), "; ") {
			name, _, _ := strings.Cut(part, " ")
			names = append(names, name)
		}
		return names
	}
	for _, e := range a.at("errors").([]any) {
		names = append(names, e.(map[string]any)["field"].(string))
	}
	return names
}

// If other rules are broken too, a time in the past is reported with them.
// Otherwise it is checked after the idempotency key: a repeated request still
// gets its first response when the time has passed.
func TestATimeInThePastIsReportedWithTheOtherErrors(t *testing.T) {
	t.Parallel()
	const past = `"2020-01-01T00:00:00Z"`
	for name, member := range map[string]string{"checkout_links.create": "expires_at", "subscriptions.create": "trial_end"} {
		i := slices.IndexFunc(writes(t), func(w write) bool { return w.name == name })
		for dialect := range dialects {
			p := writes(t)[i].prepare(t, dialect)
			wrong := golden.Edit(t, p.body, member, past)
			assert.Equal(t, []string{member}, p.send(wrong).fields())
			wrong = golden.Edit(t, golden.Edit(t, wrong, "amount", "-1"), "currency", `"gold"`)
			got := p.send(wrong).fields()
			assert.Subset(t, got, []string{member, "amount", "currency"}, name)
		}
	}
}

func TestARepeatedRequestIsReplayedAfterItsTimeHasPassed(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	const body = `{"amount":4990,"expires_at":"2027-01-04T13:00:00Z"}`
	first := m.call(http.MethodPost, "/v2/checkout-links", body, "Idempotency-Key", "link-1")
	require.Equal(t, http.StatusCreated, first.Status, string(first.Body))
	require.NoError(t, m.clock.AdvanceTo(t.Context(), noon.Add(2*time.Hour)))
	again := m.call(http.MethodPost, "/v2/checkout-links", body, "Idempotency-Key", "link-1")
	assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	assert.Equal(t, string(first.Body), string(again.Body))
}

// Earlier links sell both products in another currency.
func TestEveryProductInTheWrongCurrencyIsReported(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.link(`{"currency":"BRL","products":[{"external_id":"a","name":"A","price":1,"currency":"BRL"},{"external_id":"b","name":"B","price":1,"currency":"BRL"}]}`)
	a := m.call(http.MethodPost, "/v2/checkout-links",
		`{"currency":"USD","products":[{"external_id":"a","name":"A","price":1,"currency":"USD"},{"name":"C","price":1},{"external_id":"b","name":"B","price":1,"currency":"USD"}]}`)
	assert.Equal(t, []string{"products[0].currency", "products[2].currency"}, a.fields())
}
