package mockserver_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// A process that dies leaves a truncated data file. Wherever it ends, the
// resources and their webhooks are consistent: no webhook is lost or created
// twice, neither at the restart nor as time goes on.
func TestATruncatedDataFileIsConsistent(t *testing.T) {
	t.Parallel()
	hook := &flaky{seen: map[string]bool{}}
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	path := filepath.Join(t.TempDir(), "data")
	busyDays(t, mockserver.Run(t, mockserver.WithDataFile(path)), receiver.URL)
	content, err := os.ReadFile(path)
	require.NoError(t, err)

	ends := recordEnds(content)
	require.Greater(t, len(ends), 100)
	step := 5
	if fullSize() {
		step = 1
	}
	for i, end := range ends {
		if i%step == 0 || i+1 == len(ends) {
			t.Run(fmt.Sprintf("after record %d of %d", i+1, len(ends)), func(t *testing.T) {
				t.Parallel()
				before := restarts(t, content[:end])
				if i%5 == 0 && i+1 < len(ends) { // package datafile tries each byte
					torn := cutOff(t, content[:(end+ends[i+1])/2])
					assert.Equal(t, before, createdIDs(torn), "in the record after it")
					assertConsistent(t, torn, "in the record after it")
				}
			})
		}
	}
}

// restarts starts a gateway with a truncated data file, advances its clock by
// 33 days and returns the webhooks that it started with.
func restarts(t *testing.T, content []byte) (before []string) {
	t.Helper()
	gw := cutOff(t, content)
	assertConsistent(t, gw, "at once")
	before = createdIDs(gw)
	require.NoError(t, gw.Clock.Advance(33*24*time.Hour+time.Minute))
	assertConsistent(t, gw, "33 days later")
	assert.Subset(t, createdIDs(gw), before)
	for _, d := range gw.Webhooks.Deliveries() {
		assert.Contains(t, []string{mockserver.DeliveryDelivered, mockserver.DeliveryNoEndpoint}, d.State, d.Kind)
	}
	return before
}

// flaky is a receiver that accepts payments and renewals only at the second
// attempt.
type flaky struct {
	mu   sync.Mutex
	seen map[string]bool // events
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e, broken := webhook.Parse(body)
	if err != nil || broken != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[e.ID] && (e.Kind == webhook.TransactionPaid || e.Kind == webhook.SubscriptionRenewed) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	f.seen[e.ID] = true
}

// busyDays causes every kind of webhook in two accounts, one of which is
// reset.
func busyDays(t *testing.T, gw *mockserver.Server, hook string) {
	t.Helper()
	const other = "sk_test_other"
	for _, key := range []string{gw.Key(), other} {
		_, err := gw.Account(key).Webhooks.AddEndpoint(mockserver.Endpoint{URL: hook, Secret: gateway.NewSecret("whsec_mock")})
		require.NoError(t, err)
	}
	client := gw.Client()
	create := func(change func(*gateway.TransactionParams)) string {
		params := order("")
		change(&params)
		made, err := client.Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		return made.ID
	}
	card := func(token gateway.CardToken) func(*gateway.TransactionParams) {
		return func(p *gateway.TransactionParams) { p.Method, p.Token = gateway.CreditCard, token }
	}
	subscribe := func(change func(*gateway.SubscriptionParams)) string {
		params := subscriber(t, client)
		change(&params)
		made, err := client.Subscriptions.Create(t.Context(), params)
		require.NoError(t, err)
		return made.ID
	}

	refunded := create(func(p *gateway.TransactionParams) { p.NotifyURL = hook + "/notify" })
	require.NoError(t, gw.Transactions.Pay(refunded))
	_, err := client.Transactions.Refund(t.Context(), refunded, gateway.RefundParams{Amount: 400})
	require.NoError(t, err)
	create(func(*gateway.TransactionParams) {}) // expires
	require.NoError(t, gw.Transactions.Cancel(create(func(*gateway.TransactionParams) {})))
	create(card("pgct_captured"))
	create(card("pgct_refused"))
	create(card("pgct_chargeback"))
	for i, key := range []gateway.PixKey{"ana@example.com", "fail@example.com", "analysis@example.com"} {
		_, err := client.Transfers.Create(t.Context(), gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: key, Amount: 100, ExternalRef: fmt.Sprintf("payout-%d", i),
		})
		require.NoError(t, err)
	}

	_, err = gw.Account(other).Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	do[object](plane{t: t, gw: gw, key: other}, http.MethodPost, "/reset", "")
	_, err = gw.Account(other).Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)

	failing := subscribe(func(*gateway.SubscriptionParams) {})
	subscribe(func(p *gateway.SubscriptionParams) { p.Token = "pgct_always_fails" })
	subscribe(func(p *gateway.SubscriptionParams) { p.Token = "pgct_renewal_fails" })
	subscribe(func(p *gateway.SubscriptionParams) {
		p.Token, p.TrialEnd = "pgct_ok_trial", gw.Clock.Now().AddDate(0, 0, 10)
	})
	require.NoError(t, gw.Clock.Advance(20*24*time.Hour))
	require.NoError(t, gw.Subscriptions.FailNextCharges(failing, 2))
	require.NoError(t, gw.Clock.Advance(25*24*time.Hour))
	require.NoError(t, gw.Close())
}

// recordEnds returns where each record of a data file ends.
func recordEnds(content []byte) (ends []int) {
	const magic, head = 24, 12
	for at := magic; at < len(content); {
		at += head + int(binary.BigEndian.Uint32(content[at:])&^(1<<31)) // the bit says that a segment begins
		ends = append(ends, at)
	}
	return ends
}

// cutOff starts a gateway with a truncated data file.
func cutOff(t *testing.T, content []byte) *mockserver.Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	gw := mockserver.Run(t, mockserver.WithDataFile(path))
	require.NoError(t, gw.Wait(t.Context()))
	return gw
}

func createdIDs(gw *mockserver.Server) (ids []string) {
	for _, d := range gw.Webhooks.Deliveries() {
		ids = append(ids, d.ID)
	}
	return ids
}

// assertConsistent checks that the webhooks of each resource match its state.
func assertConsistent(t *testing.T, gw *mockserver.Server, when string) {
	t.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	known := map[string]bool{}
	for _, key := range []string{gw.Key(), "sk_test_other"} {
		account := gw.Account(key)
		required(t, account.Client(), gw.Clock.Now(), want)
		endpoints := len(account.Webhooks.Endpoints())
		require.LessOrEqual(t, endpoints, 1, when)
		for _, d := range account.Webhooks.Deliveries() {
			once := d.EventID + " " + d.Endpoint
			assert.False(t, known[once], "%s: %s was created twice", when, d.Kind)
			known[once] = true
			if d.Endpoint != "notify_url" {
				got[d.ResourceID] = append(got[d.ResourceID], d.Kind)
			}
		}
	}
	assert.Equal(t, want, got, when)
}

// required derives the required webhooks from the resources.
func required(t *testing.T, client *gateway.Client, now time.Time, kinds map[string][]string) {
	t.Helper()
	charges := map[string]bool{}
	subs, err := gateway.Collect(client.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}), 0)
	require.NoError(t, err)
	for _, listed := range subs {
		s, err := client.Subscriptions.Get(t.Context(), listed.ID)
		require.NoError(t, err)
		kinds[s.ID] = ofSubscription(s, now)
		for _, charge := range s.Transactions {
			charges[charge.ID] = true
		}
	}
	txs, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
	require.NoError(t, err)
	for _, listed := range txs {
		tx, err := client.Transactions.Get(t.Context(), listed.ID)
		require.NoError(t, err)
		if list := ofTransaction(tx, charges[tx.ID]); len(list) > 0 {
			kinds[tx.ID] = list
		}
	}
	transfers, err := gateway.Collect(client.Transfers.All(t.Context(), gateway.TransferListParams{}), 0)
	require.NoError(t, err)
	for _, tr := range transfers {
		kinds[tr.ID] = ofTransfer(&tr)
	}
}

func ofTransaction(tx *gateway.Transaction, charge bool) []string {
	var story string
	switch {
	case charge && tx.Status == gateway.TransactionRefunded: // a trial's validation
	case tx.Method == gateway.Pix:
		story = map[gateway.TransactionStatus]string{
			gateway.TransactionPending:           "created pending",
			gateway.TransactionExpired:           "created pending",
			gateway.TransactionCanceled:          "created pending cancelled",
			gateway.TransactionPaid:              "created pending paid",
			gateway.TransactionPartiallyRefunded: "created pending paid refunded",
		}[tx.Status]
	default:
		story = map[gateway.TransactionStatus]string{
			gateway.TransactionRefused:     "created",
			gateway.TransactionPaid:        "created paid",
			gateway.TransactionCaptured:    "created paid",
			gateway.TransactionChargedback: "created paid chargedback",
		}[tx.Status]
	}
	return prefixed("transaction.", story)
}

func ofTransfer(tr *gateway.Transfer) []string {
	story := "created"
	if strings.HasPrefix(string(tr.PixKey), "analysis@") && tr.Status != gateway.TransferPending {
		story += " in_analysis"
	}
	story += map[gateway.TransferStatus]string{
		gateway.TransferProcessing: " processing",
		gateway.TransferPaid:       " processing transferred",
		gateway.TransferError:      " processing failed",
	}[tr.Status]
	return prefixed("payout.", story)
}

// ofSubscription derives the webhooks from the charges and their outcomes.
func ofSubscription(s *gateway.Subscription, now time.Time) []string {
	story, paid, failed := "created", 0, 0
	if !s.TrialEnd.IsZero() && !now.Before(s.TrialEnd.AddDate(0, 0, -3)) {
		story += " trial_will_end"
	}
	charges := slices.SortedFunc(slices.Values(s.Transactions), func(a, b gateway.SubscriptionTransaction) int {
		return a.CreatedAt.Compare(b.CreatedAt.Time)
	})
	for _, c := range charges {
		switch {
		case c.Status == gateway.TransactionRefunded: // a trial's validation
		case c.Status == gateway.TransactionPaid && paid == 0:
			story += " started"
			paid++
		case c.Status == gateway.TransactionPaid:
			story += " renewed"
			paid, failed = paid+1, 0
		case failed == 0 && paid > 0:
			story += " payment_failed past_due"
			failed++
		default:
			story += " payment_failed"
			failed++
		}
	}
	if s.Status == gateway.SubscriptionCanceled {
		story += " canceled"
	}
	return prefixed("subscription.", story)
}

func prefixed(family, story string) (kinds []string) {
	for word := range strings.FieldsSeq(story) {
		kinds = append(kinds, family+word)
	}
	return kinds
}
