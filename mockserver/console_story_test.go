package mockserver_test

import (
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// inOrder fails the test unless a page contains the strings in this order.
func inOrder(t *testing.T, page string, strs ...string) {
	t.Helper()
	rest := page
	for _, s := range strs {
		_, after, found := strings.Cut(rest, s)
		require.True(t, found, "%q is missing, or not after the strings before it: %q", s, strs)
		rest = after
	}
}

// timelineOf returns the timeline of a resource's page.
func timelineOf(t *testing.T, page string) string {
	t.Helper()
	_, after, found := strings.Cut(page, `<ol class="timeline">`)
	require.True(t, found)
	timeline, _, _ := strings.Cut(after, "</section>")
	return timeline
}

// TestTheStoryOfAnOrder reads the page of an order that was paid and refunded in part, all
// at the same virtual time: what happened, why, and that the merchant's server knows.
func TestTheStoryOfAnOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.data")
	gw := mockserver.Run(t, mockserver.WithDataFile(file))
	fails := true
	receiver := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	gw.Webhooks.Send(receiver)
	client, ctx := gw.Client(), t.Context()
	params := order("order-1001")
	params.Amount, params.Products[0].Price = 15_470, 15_470
	tx, err := client.Transactions.Create(ctx, params)
	require.NoError(t, err)
	require.NoError(t, gw.Wait(ctx))
	b := browser{t, gw}
	path := consoleAt + "/transactions/" + tx.ID
	page := b.get(path).text()
	inOrder(t, page, "order-1001", "BRL 154.70 to be paid, expires in 24 h", "your server has not accepted transaction.", "✗, next attempt in ")
	inOrder(t, timelineOf(t, page), "503 in ", "next attempt in ")
	fails = false
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	_, err = client.Transactions.Refund(ctx, tx.ID, gateway.RefundParams{Amount: 6000, Reason: "broken"})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(26*time.Hour))
	_, err = client.Transactions.Get(ctx, tx.ID)
	require.NoError(t, err)

	read := func(b browser) string {
		page := b.get(path).text()
		inOrder(t, page, "order-1001", "partially_refunded", "BRL 94.70 of 154.70 left", "your server was told ✓", "Details", "What the merchant can do")
		inOrder(t, timelineOf(t, page),
			"26 h ago", "Created", "transaction.created", "delivered", "503 in", "200 in",
			"Paid BRL 154.70", "pending → paid", "“Pay”, in the console or by transactions/pay", "transaction.paid", "200 in",
			"Refunded BRL 60.00", "paid → partially refunded", "transaction.refunded", "200 in")
		assert.Equal(t, 1, strings.Count(page, `name="s.reason"`), "one field for the reason")
		assert.NotContains(t, page, "<details open><summary>document dialect", "the JSON is closed")
		return timelineOf(t, page)
	}
	inOrder(t, read(b), "POST /v2/transactions → 201", "Created", "Paid", "PUT /v2/transactions/…/refund → 200", "Refunded",
		"now", "GET /v2/transactions/… → 200")

	kept, err := gw.Snapshot()
	require.NoError(t, err)
	other := mockserver.Run(t)
	require.NoError(t, other.Restore(kept))
	inOrder(t, read(browser{t, other}), "Created", "by a request: transactions.create", "Refunded", "by a request: transactions.refund")
	require.NoError(t, gw.Close())
	again := mockserver.Run(t, mockserver.WithDataFile(file))
	inOrder(t, read(browser{t, again}), "Created", "by a request: transactions.create", "Refunded", "by a request: transactions.refund")
}

// A second partial refund moves money but leaves the state as it is.
func TestATimelineHasEveryRefund(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	for _, amount := range []int64{100, 200} {
		_, err := gw.Client().Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: amount})
		require.NoError(t, err)
	}
	inOrder(t, timelineOf(t, (browser{t, gw}).get(consoleAt+"/transactions/"+tx.ID).text()), "Paid", "Refunded BRL 1.00", "Refunded BRL 2.00")
}

// TestASubscriptionSaysWhatItCosts reads a subscription: the next charge, the periods that
// were paid, and a renewal that failed.
func TestASubscriptionSaysWhatItCosts(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	params := subscriber(t, client)
	params.Amount, params.Interval, params.Token = 4990, gateway.IntervalMonth, "pgct_renewal_fails_2_x1"
	made, err := client.Subscriptions.Create(t.Context(), params)
	require.NoError(t, err)
	b, path := browser{t, gw}, consoleAt+"/subscriptions/"+made.ID
	inOrder(t, b.get(path).text(), "BRL 49.90 every month · next charge on 2027-02-04, in 31 days", "Periods paid", "<dd>1</dd>")
	require.NoError(t, gw.Clock.Advance(31*24*time.Hour))
	page := b.get(path).text()
	inOrder(t, page, "past_due", "next attempt to charge on 2027-02-0", "Periods paid", "<dd>1</dd>")
	inOrder(t, timelineOf(t, page), "created and paid BRL 49.90", "and refused", "Past due", "active → past due", "by the clock: subscription.period_end")
}

// The server knows that the Pix was pending, but not that it has expired.
func TestAStateWithoutAWebhook(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	gw.Webhooks.Send(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	b, path := browser{t, gw}, consoleAt+"/transactions/"+tx.ID
	inOrder(t, b.get(path).text(), "BRL 10.00 to be paid", "your server was told ✓")
	require.NoError(t, gw.Clock.Advance(25*time.Hour))
	page := b.get(path).text()
	inOrder(t, page, "BRL 10.00, never paid", "no webhook reports this state")
	assert.NotContains(t, page, "your server was told")
}

// TestFindKnowsWhatPeopleHold searches for everything that a mail, a bank statement, a log
// or a list of the console shows.
func TestFindKnowsWhatPeopleHold(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client, ctx := gw.Client(), t.Context()
	params := order("Order-1001")
	params.Buyer.Name = "Ana Souza"
	tx, err := client.Transactions.Create(ctx, params)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	tx, err = client.Transactions.Get(ctx, tx.ID)
	require.NoError(t, err)
	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{Amount: 100, Title: "Shirt"})
	require.NoError(t, err)
	_, err = client.CheckoutSessions.Open(ctx, link.Slug())
	require.NoError(t, err)
	b := browser{t, gw}
	at := func(q string) string {
		p := b.ask(http.MethodGet, consoleAt+"/find?q="+url.QueryEscape(q), nil)
		require.Equal(t, http.StatusSeeOther, p.status, "%s: %s", q, p.body)
		return strings.TrimPrefix(p.header.Get("Location"), consoleAt)
	}
	for _, q := range []string{
		tx.ID, strings.ToUpper(tx.ID), "…" + tx.ID[len(tx.ID)-12:], tx.ID[len(tx.ID)-12:], "order-1001", " ORDER-1001 ",
		tx.Pix.EndToEndID, strings.ToLower(tx.Pix.EndToEndID), "ana souza", "SOUZA", "1001",
	} {
		assert.Equal(t, "/transactions/"+tx.ID, at(q), q)
	}
	assert.Equal(t, "/transactions?email=ana%40example.com", at("ANA@example.com"))
	assert.Equal(t, "/links/"+link.Slug(), at("shirt"))
	event := gw.Webhooks.Deliveries()[0]
	assert.Equal(t, "/webhooks/"+event.ID, at(event.EventID))
	request := gw.Requests.All()[0]
	assert.Equal(t, "/requests/1", at(request.ResponseHeader.Get("X-Request-Id")))

	// The timers of the home page have the ids of sessions.
	home := b.get("/").body
	timers := regexp.MustCompile(`find\?q=([^"]+)`).FindAllStringSubmatch(home, -1)
	require.NotEmpty(t, timers)
	for _, timer := range timers {
		at(timer[1])
	}

	second := order("order-1002")
	second.Buyer.Name = "Ana Souza"
	_, err = client.Transactions.Create(ctx, second)
	require.NoError(t, err)
	inOrder(t, b.get(consoleAt+"/find?q=souza").text(), "Find “souza”", "In this account", "order-1002", "Order-1001")
	assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, consoleAt+"/find?q=nothing-has-this", nil).status)
}

// Tests use a key each, so the account that the console shows first is often empty.
func TestTheConsoleLeadsToTheAccountWithActivity(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	b := browser{t, gw}
	assert.NotContains(t, b.get("/").body, "other account")
	other := gw.Account("sk_test_7").Client()
	tx, err := other.Transactions.Create(t.Context(), order("order-7"))
	require.NoError(t, err)
	elsewhere := regexp.MustCompile(`href="([^"]+)">1 other account has activity →`)
	for _, path := range []string{"/", consoleAt + "/transactions", consoleAt + "/requests", consoleAt + "/webhooks"} {
		to := elsewhere.FindStringSubmatch(b.get(path).body)
		require.Len(t, to, 2, path)
		inOrder(t, b.get(to[1]+"/transactions").text(), "order-7")
	}
	found := b.get(consoleAt + "/find?q=order-7").body
	to := regexp.MustCompile(`href="([^"]+)">1 in the account`).FindStringSubmatch(found)
	require.Len(t, to, 2)
	p := b.ask(http.MethodGet, html.UnescapeString(to[1]), nil)
	assert.True(t, strings.HasSuffix(p.header.Get("Location"), "/transactions/"+tx.ID), p.header.Get("Location"))
	assert.NotContains(t, found, "sk_test_7", "keys are secrets")

	_, err = gw.Account("sk_test_8").Client().Transactions.Create(t.Context(), order("order-8"))
	require.NoError(t, err)
	assert.Contains(t, b.get("/").body, "2 other accounts have activity →")
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-9"))
	require.NoError(t, err)
	assert.NotContains(t, b.get("/").body, "This account is empty", "this account has activity itself")
}

// A create whose response was lost, and its repeat, belong to the story of the resource,
// although neither names its id.
func TestTheStoryHasALostResponseAndItsRepeat(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithDialect(dialect))
		require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
		params := order("order-1")
		params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
		client := gw.Client(gateway.WithMaxAttempts(1))
		_, err := client.Transactions.Create(t.Context(), params)
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		params.Amount++
		params.Products[0].Price++
		_, err = client.Transactions.Create(t.Context(), params)
		require.ErrorIs(t, err, gateway.ErrDuplicate)
		other := params
		other.ExternalRef = "order-10"
		_, err = client.Transactions.Create(t.Context(), other)
		require.NoError(t, err)
		tx, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{})
		require.NoError(t, err)
		page := (browser{t, gw}).get(consoleAt + "/transactions/" + tx.ID).text()
		assert.Contains(t, page, "POST /v2/transactions → no response", dialect)
		assert.Contains(t, page, "lose-response", dialect)
		assert.Contains(t, page, "POST /v2/transactions → 409", dialect)
		assert.NotContains(t, page, "POST /v2/transactions → 201", dialect)
	}
}
