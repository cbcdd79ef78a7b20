package engine_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/webhook"
)

// FuzzActions turns every byte into one action on one resource, whatever its
// state. The world checks the invariants after every change.
func FuzzActions(f *testing.F) {
	f.Add([]byte("a payment, a trial, a payout"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25})
	f.Fuzz(func(t *testing.T, actions []byte) {
		w := newWorld(t)
		for _, a := range actions[:min(len(actions), 100)] {
			w.act(a)
		}
		w.advance(60 * 24 * time.Hour)
	})
}

// TestRandomActions does the same as FuzzActions with random actions. They are
// seeded, so that a failure can be reproduced.
func TestRandomActions(t *testing.T) {
	t.Parallel()
	seen := map[webhook.Kind]bool{}
	for seed := range uint64(60) {
		w := newWorld(t)
		random := rand.New(rand.NewPCG(seed, 0))
		for range 300 {
			w.act(byte(random.UintN(256)))
		}
		for _, e := range w.events {
			seen[webhook.Kind(e.Kind)] = true
		}
	}
	assert.ElementsMatch(t, webhook.DocumentedKinds(), slices.Collect(maps.Keys(seen)), "every documented kind and no other")
}

// act performs the action that the byte selects, on the resource that it selects.
func (w *world) act(a byte) {
	w.tb.Helper()
	all := []func(byte){
		w.actPass, w.actPay, w.actSubscribe, w.actSubscription, w.actSubscription, w.actCharge, w.actTransfer, w.actTransfer,
		w.actCheckout, w.actSession, w.actLegacy, w.actTransaction,
	}
	all[int(a)%len(all)](a / byte(len(all)))
}

func pick[T any](n byte, list []T) T { return list[int(n)%len(list)] }

// any returns one of the newest five resources of the table, or nil.
func (t *table[R]) any(n byte) *R {
	if len(t.order) == 0 {
		return nil
	}
	return t.rows[t.order[len(t.order)-1-int(n/4)%min(len(t.order), 5)]]
}

func (w *world) actPass(n byte) {
	w.advance(pick(n, []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 31 * 24 * time.Hour}))
}

func tokens() []string {
	return []string{
		"pgct_ok", "pgct_captured", "pgct_refused", "pgct_3ds", "pgct_chargeback", "pgct_renewal_fails",
		"pgct_renewal_fails_2", "pgct_always_fails", "pgct_paid",
	}
}

// fresh returns an unused token.
func (w *world) fresh(n byte) string { return pick(n, tokens()) + "_" + w.env.IDs.Alphanumeric(8) }

func (w *world) actPay(n byte) {
	in := engine.NewTransaction{Transaction: engine.Transaction{
		Amount: 1 + int64(n)*997, Currency: "BRL", Method: pick(n, []string{"pix", "voucher", "credit_card"}),
		Buyer: &engine.Buyer{Name: "Ana", Email: "ana@example.com"}, Installments: 1,
	}}
	if in.Method == "credit_card" {
		in.Token = w.fresh(n / 3)
	}
	c, _ := engine.CreateTransaction(w.env, in, engine.Existing{})
	w.apply(c)
}

func (w *world) actSubscribe(n byte) {
	edit := pick(n/2, []func(*engine.NewSubscription){
		func(*engine.NewSubscription) {}, immediateCancel, daily, every("week", 2), func(in *engine.NewSubscription) { in.BillingDay = 31 },
		func(in *engine.NewSubscription) { in.TrialEnd = w.env.Now.AddDate(0, 0, 1+int(n%9)) },
	})
	if n%2 == 0 {
		w.subscribe("", byPix, edit)
		return
	}
	w.subscribe(w.fresh(n), edit)
}

func (w *world) actSubscription(n byte) {
	s := w.subscriptions.any(n)
	if s == nil {
		return
	}
	do := pick(n, []subMove{subAuthorize, subAuthorize, subReject, subRevoke, subCancel, subUpdate, subCancelDebit, failNext(int(n % 5))})
	c, _ := do(w.env, s)
	w.apply(c)
}

func transitions() []transition {
	refund := func(amount int64) transition {
		return func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.Refund(env, t, engine.RefundRequest{Amount: amount})
		}
	}
	return []transition{
		engine.Pay, engine.Pay, engine.PassChallenge, engine.FailChallenge, engine.Refuse, engine.Cancel, engine.Expire,
		engine.Chargeback, refund(0), refund(7),
	}
}

func (w *world) actTransaction(n byte) {
	if t := w.transactions.any(n); t != nil {
		_ = w.move(t.ID, pick(n, transitions()))
	}
}

// actCharge acts on a subscription's latest transaction, by a regular transition
// or by setting its sandbox status, which every state allows.
func (w *world) actCharge(n byte) {
	s := w.subscriptions.any(n)
	if s == nil || s.Latest == nil {
		return
	}
	if n%2 == 0 {
		_ = w.move(s.Latest.ID, pick(n/2, transitions()))
		return
	}
	status := pick(n/2, []string{"paid", "refused", "refunded", "partially_refunded", "chargedback", "captured", "expired"})
	_ = w.move(s.Latest.ID, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetStatus(env, t, status)
	})
}

func (w *world) actTransfer(n byte) {
	t := w.transfers.any(n)
	if t == nil || n%3 == 0 {
		w.transfer(pick(n, []string{"ana@example.com", "fail@example.com", "analysis@example.com"}))
		return
	}
	c, _ := pick(n, []transferMove{
		engine.AnalyseTransfer, engine.ProcessTransfer, engine.SettleTransfer, engine.FailTransfer, engine.CancelTransfer,
	})(w.env, t)
	w.apply(c)
}

func (w *world) actCheckout(n byte) {
	l := w.links.any(n)
	switch {
	case l == nil || n%4 == 0:
		in := productLink(engine.CatalogProduct{ExternalID: pick(n/4, []string{"A", "B", ""}), Name: "A", Price: int64(n)})
		in.MaxUses = int(n % 3)
		if n%5 == 0 {
			in.ExpiresAt = w.env.Now.Add(48 * time.Hour)
		}
		w.link(in)
	case n%9 == 0:
		c, _ := engine.ExpireLink(w.env, l, w.sessionsOf(l))
		w.apply(c)
	default:
		c, _ := engine.OpenSession(w.env, l, w.sessions.any(n))
		w.apply(c)
	}
}

// sessionsOf returns the sessions of a link.
func (w *world) sessionsOf(l *engine.Link) []*engine.Session {
	return slices.DeleteFunc(w.sessions.all(), func(s *engine.Session) bool { return s.Slug != l.Slug })
}

func (w *world) actSession(n byte) {
	s := w.sessions.any(n)
	switch {
	case s == nil:
	case n%3 == 0:
		_ = w.buy(s.ID)
	case n%7 == 0:
		_ = w.begin(s.ID)
	default:
		_ = w.fill(s.ID, engine.SessionUpdate{Buyer: ana, Method: pick(n, []string{"pix", "credit_card"})})
	}
}

func (w *world) actLegacy(n byte) {
	var v1 []string
	for _, t := range w.transactions.all() {
		if t.Legacy != nil {
			v1 = append(v1, t.ID)
		}
	}
	if len(v1) == 0 || n%4 == 0 {
		w.legacyPayment()
		return
	}
	status := pick(n, []string{"PAID", "REFUND", "CANCELLED", "IN_ANALYSIS", "WAITING_PAYMENT"})
	_ = w.move(pick(n, v1), func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetLegacyStatus(env, t, status)
	})
}
