package exam_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/exam"
)

func call(h http.Handler, method, path, body string) (status int, answer string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// What the exam sends, with members that hooks must ignore.
const placed = `{"id":"x412","amount":1990,"currency":"BRL","method":"credit_card","buyer":{"name":"José & Ana <Souza>",
"email":"ana@example.com","document":{"type":"CPF","number":"52998224725"},"address":{"street":"Rua das Flores","zipCode":"01001000"}},
"card_token":"pgct_ok_1","something":{"new":1}}`

func TestHooksPassWhatTheExamSends(t *testing.T) {
	t.Parallel()
	var got []any
	h := exam.Hooks{
		Place:     func(_ context.Context, o exam.Order) error { got = append(got, o); return nil },
		Refund:    func(_ context.Context, r exam.Refund) error { got = append(got, r); return nil },
		Tick:      func(_ context.Context, now time.Time) error { got = append(got, now); return nil },
		Return:    func(_ context.Context, id, status string) error { got = append(got, id+" "+status); return nil },
		Subscribe: func(_ context.Context, s exam.Subscription) error { got = append(got, s); return nil },
		PayOut:    func(_ context.Context, p exam.Payout) error { got = append(got, p); return nil },
		Report: func(_ context.Context, id string) (exam.Report, error) {
			return exam.Report{ID: id, Status: exam.StatusPaid, Paid: 1990, Shipped: 1, Charges: []string{"01a2"}}, nil
		},
		ReportSubscription: func(_ context.Context, id string) (exam.Agreement, error) {
			return exam.Agreement{ID: id, Status: "active", Periods: 2, Paid: 200}, nil
		},
		ReportPayout: func(_ context.Context, id string) (exam.Agreement, error) {
			return exam.Agreement{ID: id, Status: exam.StatusPaid, Paid: 5}, nil
		},
	}
	for _, c := range []struct{ path, body string }{
		{"orders", placed},
		{"orders/x412/refunds", `{"id":"r1","amount":500}`},
		{"tick", `{"now":"2027-01-04T12:10:00Z"}`},
		{"orders/x412/return", `{"status":"paid"}`},
		{"subscriptions", `{"id":"s1","amount":100,"interval":"month","card_token":"pgct_ok_2","buyer":{"name":"Ana"}}`},
		{"payouts", `{"id":"p1","amount":5,"pix_key":"ana@example.com"}`},
	} {
		status, answer := call(h, http.MethodPost, "/exam/"+c.path, c.body)
		assert.Equal(t, http.StatusOK, status, "%s: %s", c.path, answer)
	}
	assert.Equal(t, []any{
		exam.Order{
			ID: "x412", Amount: 1990, Currency: gateway.BRL, Method: gateway.CreditCard, CardToken: "pgct_ok_1",
			Buyer: gateway.BuyerParams{
				Name: "José & Ana <Souza>", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
				Address: &gateway.Address{Street: "Rua das Flores", ZipCode: "01001000"},
			},
		},
		exam.Refund{OrderID: "x412", ID: "r1", Amount: 500},
		time.Date(2027, time.January, 4, 12, 10, 0, 0, time.UTC),
		"x412 paid",
		exam.Subscription{ID: "s1", Amount: 100, Interval: gateway.IntervalMonth, CardToken: "pgct_ok_2", Buyer: gateway.BuyerParams{Name: "Ana"}},
		exam.Payout{ID: "p1", Amount: 5, PixKey: "ana@example.com"},
	}, got)

	for path, want := range map[string]string{
		"orders/x412":      `{"id":"x412","status":"paid","paid":1990,"refunded":0,"charged_back":0,"shipped":1,"charges":["01a2"]}`,
		"subscriptions/s1": `{"id":"s1","status":"active","periods":2,"paid":200}`,
		"payouts/p1":       `{"id":"p1","status":"paid","periods":0,"paid":5}`,
	} {
		status, answer := call(h, http.MethodGet, "/exam/"+path, "")
		assert.Equal(t, http.StatusOK, status)
		assert.JSONEq(t, want, answer)
	}
}

func TestTheStatusOfAHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 200},
		{exam.ErrPending, 202},
		{fmt.Errorf("charge: %w", gateway.ErrOutcomeUnknown), 202},
		{exam.ErrUnknown, 404},
		{fmt.Errorf("%w: no funds", exam.ErrRefused), 422},
		{errors.Join(exam.ErrRefused, gateway.ErrOutcomeUnknown), 422},
		{gateway.ErrServer, 500},
		{context.Canceled, 500},
	} {
		h := exam.Hooks{
			Place:  func(context.Context, exam.Order) error { return c.err },
			Report: func(context.Context, string) (exam.Report, error) { return exam.Report{}, c.err },
		}
		status, _ := call(h, http.MethodPost, "/exam/orders", placed)
		assert.Equal(t, c.want, status, "%v", c.err)
		status, _ = call(h, http.MethodGet, "/exam/orders/x1", "")
		assert.Equal(t, c.want, status, "%v", c.err)
	}
}

func TestHooksThatAreNotSetRespond501(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/exam/orders", 501},
		{http.MethodGet, "/exam/orders/x1", 501},
		{http.MethodPost, "/exam/orders/x1/refunds", 501},
		{http.MethodPost, "/exam/orders/x1/return", 501},
		{http.MethodPost, "/exam/tick", 501},
		{http.MethodPost, "/exam/subscriptions", 501},
		{http.MethodGet, "/exam/subscriptions/s1", 501},
		{http.MethodPost, "/exam/payouts", 501},
		{http.MethodGet, "/exam/payouts/p1", 501},
		{http.MethodGet, "/exam/orders", 404},
		{http.MethodGet, "/exam/orders/x1/refunds/r1", 404},
		{http.MethodDelete, "/exam/orders/x1", 404},
		{http.MethodPost, "/orders", 404},
		{http.MethodPost, "/exam", 404},
		{http.MethodGet, "/", 404},
	} {
		status, _ := call(exam.Hooks{}, c.method, c.path, "{}")
		assert.Equal(t, c.want, status, "%s %s", c.method, c.path)
	}
}

func TestABodyThatIsNoOrderIsRejected(t *testing.T) {
	t.Parallel()
	h := exam.Hooks{Place: func(context.Context, exam.Order) error { panic("not reached") }}
	for _, body := range []string{"", "x", `{"id":1}`, `{"amount":"19.90"}`, `[]`, `{"id":"` + strings.Repeat("x", 1<<20) + `"}`} {
		status, answer := call(h, http.MethodPost, "/exam/orders", body)
		assert.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, answer, "the body: ")
	}
}
