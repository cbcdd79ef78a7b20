package merchant_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// person is a buyer whose data is in no other test.
type person struct{ name, email, cpf, phone, street string }

var zuleica = person{
	name: "Zuleica Quintanilha", email: "zuleica.quintanilha@example.com", cpf: "39053344705", phone: "21976501234", street: "Travessa das Erasuras",
}

// texts are what must be nowhere.
func (p person) texts() []string {
	return []string{p.name, "zuleica", "quintanilha", p.email, p.cpf, p.phone, p.street}
}

func (p person) document() *gateway.Document {
	return &gateway.Document{Type: gateway.CPF, Number: p.cpf}
}

func (p person) address() *gateway.Address {
	return &gateway.Address{Street: p.street, City: "Niterói", ZipCode: "24020003", Country: gateway.Brazil}
}

// buys makes a charge one of the person.
func (p person) buys(c merchant.ChargeParams) merchant.ChargeParams {
	c.Buyer = gateway.BuyerParams{
		Name: p.name, Email: p.email, Phone: p.phone, Document: p.document(),
		Address: p.address(),
	}
	c.Products[0].Name = "A letter for " + p.name
	c.Metadata = `{"gift":"for ` + p.name + `"}`
	return c
}

// buysAt buys by a link.
func (p person) buysAt(w *world, l *merchant.Link) string {
	w.Helper()
	client, slug := w.gw.Client(), (&gateway.CheckoutLink{URL: l.URL}).Slug()
	session, err := client.CheckoutSessions.Open(w.Context(), slug)
	require.NoError(w, err)
	_, err = client.CheckoutSessions.Update(w.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{
			Name: p.name, Email: p.email, Phone: p.phone, Document: p.document(),
			Address: p.address(),
		},
		PaymentMethod: gateway.Pix,
	})
	require.NoError(w, err)
	require.NoError(w, w.gw.Checkout.Pay(slug))
	page, err := client.Transactions.List(w.Context(), gateway.TransactionListParams{Limit: 1})
	require.NoError(w, err)
	require.Len(w, page.Items, 1)
	return strings.ToLower(page.Items[0].ID)
}

// tablesOf are the tables of package merchant, and those that it stands on.
func (w *world) tablesOf() []string {
	w.Helper()
	if w.dialect == database.DialectSQLite {
		return w.strings(`SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'gateway%' ORDER BY 1`)
	}
	return w.strings(`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE 'gateway%' ORDER BY 1`)
}

// holds returns where the tables have one of some texts.
func (w *world) holds(texts ...string) (places []string) {
	w.Helper()
	for _, table := range w.tablesOf() {
		places = append(places, w.storesIn(table, texts)...)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// dump returns the bytes of the database: on SQLite those of its files, after VACUUM.
func (w *world) dump() string {
	w.Helper()
	if w.dialect == database.DialectSQLite {
		w.exec(`VACUUM`)
		var busy, log, done int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done))
		require.Zero(w, busy, "the log is in use")
		name, _, _ := strings.Cut(strings.TrimPrefix(w.name, "file:"), "?")
		var all []byte
		for _, file := range []string{name, name + "-wal"} {
			b, err := os.ReadFile(file)
			require.NoError(w, err)
			all = append(all, b...)
		}
		return string(all)
	}
	program, err := exec.LookPath("pg_dump")
	if err != nil { // the tables are searched anyway
		return strings.Join(w.holds(zuleica.texts()...), "\n")
	}
	url, schema, _ := strings.Cut(w.name, "&search_path=")
	out, err := exec.CommandContext(w.Context(), program, "--dbname", url, "--table", schema+".gateway_*").Output()
	require.NoError(w, err)
	require.Contains(w, string(out), "gateway_charges")
	return string(out)
}

// erased checks that no byte of the database is of the person.
func (w *world) erased() {
	w.Helper()
	assert.Empty(w, w.holds(zuleica.texts()...))
	bytes := strings.ToLower(w.dump())
	for _, text := range zuleica.texts() {
		text = strings.ToLower(text)
		assert.NotContains(w, bytes, text)
		assert.NotContains(w, bytes, hex.EncodeToString([]byte(text)), "%s in hexadecimal", text)
	}
	if w.Failed() {
		w.FailNow()
	}
}

// audience makes a shop that sells everything, with callbacks that store nothing of a buyer.
func (w *world) audience() *world {
	w.Helper()
	w.members()
	w.told()
	w.on.Access = func(ctx context.Context, tx *txn, a *merchant.Access) error {
		return w.called(ctx, tx, "access", a.ID, a.ID, 0)
	}
	w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
		return w.called(ctx, tx, "paid", c.Order, c.ID, c.Paid)
	}
	w.cfg.Accounts[0].Links, w.cfg.Accounts[0].NoSubscriptions = true, true
	w.cfg.AdoptRate = 100
	return w
}

// erase erases something of the person.
func (w *world) erase(p merchant.EraseParams) error {
	w.Helper()
	p.By, p.Why = "the data protection officer", "request 17"
	return w.m.Erase(w.Context(), p)
}

// paysPerson pays an order of the person, and waits until the shop has heard of it.
func (w *world) paysPerson(p merchant.ChargeParams) *merchant.Charge {
	w.Helper()
	w.order(p.Order)
	c := w.charge(zuleica.buys(p))
	require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
	w.eventually("paid", func() bool { return w.state(p.Order).Settled })
	w.settled()
	require.NoError(w, w.m.Idle(w.Context()))
	return c
}

// planted writes the person's data where a shop, a person, the gateway or a later release may have.
func (w *world) planted() {
	w.Helper()
	text := `"Later":{"Name":"` + zuleica.name + `","Phone":"` + zuleica.phone + `"}}`
	for _, table := range []string{"gateway_charges", "gateway_refunds", "gateway_payouts", "gateway_subscriptions"} {
		w.exec(`UPDATE ` + table + ` SET record = SUBSTR(record, 1, LENGTH(record) - 1) || ',` + text + `'`)
	}
	w.exec(`UPDATE gateway_adoptions SET request = SUBSTR(request, 1, LENGTH(request) - 1) || ',` + text +
		`', error = '` + zuleica.email + `'`)
	w.exec(`UPDATE gateway_facts SET error = ?`, "the mail to "+zuleica.email+" failed")
	w.exec(`UPDATE gateway_subscriptions SET params = ?`, `{"metadata":"`+zuleica.name+`"}`)
	w.exec(`UPDATE gateway_operations SET progress = '{"sends":2,"history":[{"at":"2026-01-02T03:04:05Z","text":"` +
		zuleica.street + `"}],"later":"` +
		zuleica.name + `"}'`)
	charges := w.strings(`SELECT book || ',' || account || ',' || subject || ',' || id FROM gateway_charges`)
	payouts := w.strings(`SELECT book || ',' || account || ',' || subject || ',' || id FROM gateway_payouts`)
	for i, is := range append(charges, payouts...) {
		of := strings.Split(is, ",")
		for j, kind := range []string{"adoption", "a_later_kind"} {
			w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, about, kind, text, since, closed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`,
				fmt.Sprint("planted/", i, j), of[1], of[0], of[2], of[3], map[bool]string{true: "payout"}[i >= len(charges)], kind,
				"not accepted: "+zuleica.street)
		}
		w.exec(`INSERT INTO gateway_notes (account, book, subject, record, problem, kind, decision, resource_id, decided_by, why, call, error, created_at)
			VALUES (?, ?, ?, ?, '', 'callback', 'retry', '', 'support', ?, ?, ?, 0)`, of[1], of[0], of[2], of[3],
			zuleica.name+" has called", fmt.Sprint("planted/", i), zuleica.street)
	}
	for _, is := range []string{
		`SELECT 'transaction/' || transaction_id FROM gateway_charges`,
		`SELECT 'transfer/' || transfer_id FROM gateway_payouts`,
		`SELECT 'subscription/' || subscription_id FROM gateway_subscriptions`,
	} {
		for i, resource := range w.strings(is) {
			for state := 3; state <= 5; state++ {
				w.exec(`INSERT INTO gateway_webhook_events (key, account, event_id, kind, resource, fact, signed, source, late, position, digest, key_id, trace, body,
						confirmed, state, aside, attempts, token, due, lease, since, arrived, matched, reason)
					VALUES (?, 'shop', '', 'transaction.later', ?, '', 1, '', 0, 0, ?, '', '', ?, ?, ?, '', 1, '', 0, 0, 0, 0, '', ?)`,
					fmt.Sprint("planted/", resource, i, state), resource, zuleica.cpf, []byte(`{"name":"`+zuleica.name+`"}`),
					[]byte(zuleica.phone), state,
					zuleica.street+" is unknown")
			}
		}
	}
}

// The shop sells, refunds, is disputed, pays out, sells by link, adopts and has a member. After the
// erasure no byte of the database is of the buyer; before, each table has some.
func TestWhatIsErasedIsNowhere(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		adopted := old.sellsTo(zuleica, "A9", 900)
		stop := w.audience().open().start()
		paid := w.paysPerson(pix("A1", 1000))
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 400, Reason: zuleica.name +
			" is not content"})
		require.NoError(w, err)
		disputed := w.paysPerson(pix("A2", 700))
		require.NoError(w, w.gw.Transactions.OpenDispute(disputed.TransactionID))
		w.refresh(disputed.ID)
		failed := w.charge(zuleica.buys(voucher(w.order("A3"), 500)))
		require.NoError(w, w.gw.Transactions.Expire(failed.TransactionID))
		w.refresh(failed.ID)
		for id, order := range map[string]string{"P1": "", "P2": "A1"} {
			p := bill(id, order, 1000)
			p.PixKeyValue, p.Description = gateway.PixKey(zuleica.email), "for "+zuleica.name
			w.settle(w.pay(p).TransferID)
		}
		sale := zuleica.buysAt(w, w.link(mug("mug-2", 1500)))
		w.order("A9")
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: adopted.ID, Order: "A9"}))
		m := w.member("M1", "pgct_ok_1")
		m.Customer = gateway.CustomerParams{
			Name: zuleica.name, Email: zuleica.email, Phone: zuleica.phone,
			Document: zuleica.document(), Address: zuleica.address(),
		}
		m.Metadata = map[string]any{"member": zuleica.name}
		w.subscribe(m)
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		assert.NotEmpty(w, paid.PixCode)
		assert.NotEmpty(w, failed.Voucher.Barcode)

		// What is under way can't be erased.
		under := func(p merchant.EraseParams, what string) {
			w.Helper()
			err := w.erase(p)
			require.ErrorIs(w, err, merchant.ErrState)
			require.ErrorContains(w, err, what)
		}
		under(merchant.EraseParams{Order: "A2"}, "charge shop-A2-1 is disputed: wait until the dispute has ended")
		under(merchant.EraseParams{Subscription: "M1"}, "subscription M1 is active, so it may still be charged: cancel it")
		require.NoError(w, w.gw.Transactions.LoseDispute(disputed.TransactionID))
		w.refresh(disputed.ID)
		_, err = w.m.CancelSubscription(w.Context(), "M1", "")
		require.NoError(w, err)
		under(merchant.EraseParams{Subscription: "M1"}, "subscription M1 is cancel_scheduled")
		w.pass(month + time.Hour)
		w.reads("M1", "it has ended", func(s *merchant.Subscription) bool { return s.State == "canceled" })
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		w.quiet(`SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL`)
		stop()
		before := make(map[string]*merchant.Order)
		for _, id := range []string{"A1", "A2", "A3", "A9"} {
			before[id] = w.state(id)
		}

		w.planted()
		places := strings.Join(w.holds(zuleica.texts()...), "\n")
		for _, column := range []string{
			"gateway_adoptions.request", "gateway_adoptions.error", "gateway_charges.record", "gateway_facts.error",
			"gateway_notes.why", "gateway_notes.error", "gateway_operations.progress", "gateway_payouts.record",
			"gateway_problems.text",
			"gateway_refunds.record", "gateway_subscriptions.record", "gateway_subscriptions.params",
			"gateway_webhook_events.body", "gateway_webhook_events.confirmed", "gateway_webhook_events.reason",
			"gateway_webhook_events.digest",
		} {
			assert.Contains(w, places, column+" has ", "the test must not pass without it")
		}
		assert.Contains(w, strings.ToLower(w.dump()), "zuleica")
		assert.Equal(w, 2, w.count(`SELECT COUNT(DISTINCT digest) FROM gateway_buyers`), "of the document and of the address")
		for _, p := range []merchant.EraseParams{
			{Order: "A1"}, {Order: "A2"}, {Order: "A3"}, {Order: "A9"}, {Sale: sale}, {Payout: "P1"}, {Subscription: "M1"},
		} {
			require.NoError(w, w.erase(p))
			require.NoError(w, w.erase(p), "a second call changes nothing")
		}
		w.erased()
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_buyers`))
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_operations WHERE digest <> ''`))
		assert.Equal(w, 7,
			w.count(`SELECT COUNT(*) FROM gateway_notes WHERE decision = 'erase' AND decided_by = 'the data protection officer' AND why = 'request 17'`))

		// The books are as before.
		for id, was := range before {
			is := w.state(id)
			assert.WithinDuration(w, time.Now(), is.Erased, time.Minute)
			assert.Equal(w, was.Net(), is.Net())
			require.Len(w, is.Charges, len(was.Charges))
			for i, c := range is.Charges {
				was := was.Charges[i]
				assert.Equal(w, is.Erased, c.Erased)
				assert.Empty(w, c.PixCode)
				assert.Nil(w, c.Voucher)
				assert.Equal(w, [...]any{
					was.ID, was.TransactionID, was.State, was.Method, was.EndToEndID, was.Paid, was.Refunded,
					was.Disputed,
				},
					[...]any{c.ID, c.TransactionID, c.State, c.Method, c.EndToEndID, c.Paid, c.Refunded, c.Disputed})
			}
			story, err := w.m.Story(w.Context(), id)
			require.NoError(w, err)
			last := story[len(story)-1]
			assert.Equal(w, "the data protection officer", last.By)
			assert.Equal(w, "order: erase: request 17", last.Text)
		}
		r, err := w.m.Record(w.Context(), "", "charge", sale)
		require.NoError(w, err)
		assert.Equal(w, &gateway.Buyer{}, r.Order.Charges[0].Buyer, "no callback needs to expect nil")
		out, err := w.m.PayoutByID(w.Context(), "P2")
		require.NoError(w, err)
		assert.False(w, out.Erased.IsZero(), "it belongs to order A1")
		s, err := w.m.Subscription(w.Context(), "M1")
		require.NoError(w, err)
		assert.False(w, s.Erased.IsZero())
		assert.Equal(w, int64(2990), s.Order.Paid)
		hits, err := w.m.Find(w.Context(), paid.TransactionID)
		require.NoError(w, err)
		require.Len(w, hits, 1)
		_, _, err = w.m.CheckMonth(w.Context(), "shop", time.Now().UTC().Format("2006-01"))
		require.NoError(w, err)
		require.NoError(w, w.m.Export(w.Context(), httptest.NewRecorder(), "shop", time.Now().UTC().Format("2006-01"),
			merchant.CSV))
		w.problems()
	}, mockserver.WithOpeningBalance(1_000_000), mockserver.WithDialect(mockserver.Live))
}

// sellsTo makes a Pix charge of a person, who pays it.
func (o *oldShop) sellsTo(p person, order string, amount int64) *gateway.Transaction {
	o.Helper()
	c := p.buys(pix("", amount)).TransactionParams
	c.ExternalRef = "old-" + order
	t, err := o.client.Transactions.Create(o.Context(), c)
	require.NoError(o, err)
	require.NoError(o, o.gw.Transactions.Pay(t.ID))
	return t
}

// What is read after the erasure changes money and states, and brings nothing of the buyer back.
func TestReadingsAfterTheErasureBringNothingBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.audience().open().start()
		c := w.paysPerson(pix("A1", 1000))
		other := w.paysPerson(pix("A2", 700))
		sale := zuleica.buysAt(w, w.link(mug("mug-2", 1500)))
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		for _, p := range []merchant.EraseParams{{Order: "A1"}, {Order: "A2"}, {Sale: sale}} {
			require.NoError(w, w.erase(p))
		}
		again := w.charge(zuleica.buys(pix("A1", 1000)))
		assert.Equal(w, c.ID, again.ID, "the order was paid")
		assert.Empty(w, again.PixCode)

		// The same events once more, a refund by someone else, one of the shop's, and disputes.
		for _, d := range w.gw.Webhooks.Deliveries() {
			require.NoError(w, w.gw.Webhooks.Redeliver(d.ID))
		}
		_, err := w.gw.Client().Transactions.Refund(w.Context(), c.TransactionID, gateway.RefundParams{Amount: 250})
		require.NoError(w, err)
		w.eventually("booked", func() bool { return w.state("A1").Refunded == 250 })
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 400, Reason: "a call by " +
			zuleica.name})
		require.NoError(w, err)
		w.eventually("refunded", func() bool { return w.state("A1").Refunded == 400 })
		assert.Equal(w, "R1", r.ID)
		for _, id := range []string{other.TransactionID, sale} {
			require.NoError(w, w.gw.Transactions.OpenDispute(id))
		}
		w.refresh(other.ID)
		w.refresh(sale)
		assert.Equal(w, int64(700), w.state("A2").Disputed)
		require.NoError(w, w.m.Reconcile(w.Context()))
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		w.reaches("shop/A2", "goods paid A2 700", "goods disputed A2 0")
		w.quiet(`SELECT COUNT(*) FROM gateway_operations WHERE state <> 'done'`)
		stop()
		w.erased()
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_buyers`))
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_operations WHERE digest <> ''`),
			"also of the refund that was made since")

		// What would store a buyer again is an error.
		c3 := w.charge(zuleica.buys(pix(w.order("A3"), 100)))
		require.NoError(w, w.gw.Transactions.Expire(c3.TransactionID))
		w.refresh(c3.ID)
		w.open().start()
		require.NoError(w, w.m.Idle(w.Context()))
		w.settled()
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A3"}))
		_, err = w.m.Charge(w.Context(), zuleica.buys(pix("A3", 100)))
		require.ErrorIs(w, err, merchant.ErrErased)
		require.ErrorContains(w, err, "order/A3")
		_, err = w.m.Payout(w.Context(), bill("P3", "A3", 1000))
		require.ErrorIs(w, err, merchant.ErrErased)
		_, err = w.m.Adopt(w.Context(), merchant.Adoption{Transaction: w.oldShop().sells("A3", 100).ID, Order: "A3"})
		require.ErrorIs(w, err, merchant.ErrErased)
		require.Len(w, w.state("A3").Charges, 1)
	}, mockserver.WithOpeningBalance(1_000_000), mockserver.WithDialect(mockserver.Live))
}

// What an earlier release stores in a record that was erased is not shown, and goes with the next change.
func TestAnEarlierReleaseBesideThis(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.audience().open().start()
		c := w.paysPerson(pix("A1", 1000))
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A1"}))
		w.records("gateway_charges", c.ID, func(r map[string]any) { r["PixCode"] = "a code of " + zuleica.name })
		assert.Empty(w, w.state("A1").Charges[0].PixCode)
		assert.NotEmpty(w, w.holds(zuleica.texts()...))
		_, err := w.gw.Client().Transactions.Refund(w.Context(), c.TransactionID, gateway.RefundParams{Amount: 250})
		require.NoError(w, err)
		w.eventually("booked", func() bool { return w.state("A1").Refunded == 250 })
		w.settled()
		assert.Empty(w, w.holds(zuleica.texts()...))
	})
}

// While something is under way, nothing is erased, and the error says what to wait for.
func TestWhatIsUnderWayIsNotErased(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		w.audience().open()
		under := func(p merchant.EraseParams, what string) {
			w.Helper()
			err := w.erase(p)
			require.ErrorIs(w, err, merchant.ErrState)
			require.ErrorContains(w, err, what)
			assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_notes`))
			assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_charges WHERE erased_at > 0`))
		}
		w.stored(zuleica.buys(pix(w.order("A1"), 1000)))
		under(merchant.EraseParams{Order: "A1"}, "charge shop-A1-1 is new: wait until its outcome is known")
		c, err := w.m.Send(w.Context(), "shop-A1-1")
		require.NoError(w, err)
		under(merchant.EraseParams{Order: "A1"},
			"charge shop-A1-1 may still be paid: wait until it was paid or has expired, at 20")
		under(merchant.EraseParams{Order: "A1"}, "or close the order")
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		under(merchant.EraseParams{Order: "A1"}, "the callback")
		stop := w.start()
		require.NoError(w, w.m.Idle(w.Context()))
		w.settled()
		stop()
		w.refund(merchant.RefundParams{ID: "R1", Order: "A1", UpTo: 400})
		under(merchant.EraseParams{Order: "A1"}, "refund R1 is new: wait until it is done or rejected")
		w.tx(func(tx *txn) error {
			_, err := w.m.PayoutTx(w.Context(), tx, bill("P1", "", 1000))
			return err
		})
		under(merchant.EraseParams{Payout: "P1"}, "payout P1 is new: wait until it was paid or has failed")
		w.order("A2")
		require.NoError(w, w.adoptsTx(merchant.Adoption{Transaction: old.sells("A2", 100).ID, Order: "A2"}))
		under(merchant.EraseParams{Order: "A2"}, "waits for its adoption: let Run adopt it")
		stop = w.open().start()
		require.NoError(w, w.m.Idle(w.Context()))
		w.settled()
		stop()
		w.exec(`UPDATE gateway_webhook_events SET state = 1, due = ? WHERE resource = ? AND kind = 'transaction.paid'`,
			time.Now().Add(time.Hour).UnixMilli(), "transaction/"+strings.ToLower(c.TransactionID))
		under(merchant.EraseParams{Order: "A1"},
			"an event about transaction/"+strings.ToLower(c.TransactionID)+" is not handled yet")
		w.exec(`UPDATE gateway_webhook_events SET state = 3`)
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A1"}))
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A2"}))

		// An order that is closed wants no money: an open charge of it does not matter, and what is paid goes
		// back.
		c = w.charge(zuleica.buys(pix(w.order("A4"), 1000)))
		w.tx(func(tx *txn) error { return w.m.CloseOrderTx(w.Context(), tx, "A4") })
		w.settled()
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A4"}))
		assert.Empty(w, w.state("A4").Charges[0].PixCode)
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.refresh(c.ID)
		assert.Equal(w, int64(1000), w.state("A4").Paid)
		assert.Empty(w, w.holds(zuleica.texts()...))
	}, mockserver.WithOpeningBalance(1_000_000), mockserver.WithDialect(mockserver.Live))
}

// Each member is checked, and what is not there is not found.
func TestAnErasureThatIsWrong(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.audience().open().start()
		w.paysPerson(pix("A1", 1000))
		for field, p := range map[string]merchant.EraseParams{
			"order":        {By: "b", Why: "w"},
			"sale":         {Sale: " x", By: "b", Why: "w"},
			"subscription": {Subscription: "x ", By: "b", Why: "w"},
			"payout":       {Payout: "\x00", By: "b", Why: "w"},
			"exactly one":  {Order: "A1", Payout: "P1", By: "b", Why: "w"},
			"by":           {Order: "A1", By: " ", Why: "w"},
			"why":          {Order: "A1", By: "b"},
		} {
			err := w.m.Erase(w.Context(), p)
			require.ErrorIs(w, err, gateway.ErrValidation, field)
			require.ErrorContains(w, err, field)
			require.ErrorIs(w, w.in(w.db, 0, func(tx *txn) error { return w.m.EraseTx(w.Context(), tx, p) }),
				gateway.ErrValidation)
		}
		for _, p := range []merchant.EraseParams{{Order: "A0"}, {Sale: "a1"}, {Subscription: "A1"}, {Payout: "A1"}} {
			err := w.erase(p)
			require.ErrorIs(w, err, merchant.ErrNotFound)
			require.ErrorContains(w, err, p.Order+p.Sale+p.Subscription+p.Payout)
		}
		require.ErrorIs(w, w.m.Book("acme").Erase(w.Context(), merchant.EraseParams{Order: "A1", By: "b", Why: "w"}),
			merchant.ErrAccount)
		for field, is := range map[string]struct {
			who     merchant.Buyer
			by, why string
		}{
			"document": {merchant.Buyer{Document: " .-", Email: " "}, "b", "w"}, "by": {merchant.Buyer{Email: "x"}, "", "w"},
			"why": {merchant.Buyer{Email: "x"}, "b", " "},
		} {
			_, err := w.m.EraseBuyer(w.Context(), is.who, is.by, is.why)
			require.ErrorIs(w, err, gateway.ErrValidation, field)
			require.ErrorContains(w, err, field)
		}
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_notes`))

		// In a transaction of the shop, both or neither.
		p := merchant.EraseParams{Order: "A1", By: "b", Why: "w"}
		require.Error(w, w.in(w.db, 0, func(tx *txn) error {
			require.NoError(w, w.m.EraseTx(w.Context(), tx, p))
			return context.Canceled
		}))
		assert.True(w, w.state("A1").Erased.IsZero())
		w.tx(func(tx *txn) error { return w.m.EraseTx(w.Context(), tx, p) })
		assert.False(w, w.state("A1").Erased.IsZero())
	})
}

// A payout of an order is erased alone: the rest of the order stays.
func TestAPayoutOfAnOrderIsErasedAlone(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.audience().open().start()
		w.paysPerson(pix("A1", 1000))
		w.settle(w.pay(bill("P1", "A1", 1000)).TransferID)
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		require.NoError(w, w.erase(merchant.EraseParams{Payout: "P1"}))
		o := w.state("A1")
		assert.True(w, o.Erased.IsZero())
		assert.False(w, o.Payouts[0].Erased.IsZero())
		assert.NotEmpty(w, o.Charges[0].PixCode)
		again := w.pay(bill("P1", "A1", 1000))
		assert.Equal(w, merchant.Paid, again.State)
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A1"}))
		assert.Equal(w, 2, w.count(`SELECT COUNT(*) FROM gateway_notes`))
	}, mockserver.WithOpeningBalance(1_000_000), mockserver.WithDialect(mockserver.Live))
}

// A buyer is found in all that belongs to him, in the book alone that is asked for.
func TestABuyersRecordsAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.audience()
		w.companies().start()
		globex := w.m.Book("globex")
		pays := func(account, order string, p merchant.ChargeParams) {
			w.Helper()
			p.Account, p.Order = account, order
			c := w.charge(p)
			key := "sk_test_" + account
			if account == "shop" {
				key = w.gw.Key()
			}
			require.NoError(w, w.gw.Account(key).Transactions.Pay(c.TransactionID))
		}
		pays("shop", "1", zuleica.buys(pix("", 100)))
		pays("globex", "1", zuleica.buys(pix("", 100)))
		byMail := zuleica.buys(pix("", 200))
		byMail.Buyer.Email, byMail.Buyer.Document = " Zuleica.Quintanilha@EXAMPLE.com"[1:],
			&gateway.Document{Type: gateway.CPF, Number: "52998224725"}
		pays("branch", "2", byMail)
		byDocument := zuleica.buys(pix("", 300))
		byDocument.Buyer.Email, byDocument.Buyer.Document.Number = "another@example.com", "390.533.447-05"
		pays("branch", "3", byDocument)
		pays("shop", "4", pix("", 400))
		p := bill("P1", "", 1000)
		p.Account, p.PixKeyType, p.PixKeyValue = "shop", gateway.PixKeyCPF, gateway.PixKey(zuleica.cpf)
		open := w.pay(p)
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))

		_, err := w.m.EraseBuyer(w.Context(), merchant.Buyer{Email: zuleica.email}, "b", "w")
		require.ErrorIs(w, err, merchant.ErrAccount, "there are two books")
		acme := w.m.Book("acme")
		result, err := acme.EraseBuyer(w.Context(), merchant.Buyer{Email: "\tZULEICA.quintanilha@example.com "}, "b", "w")
		require.NoError(w, err)
		assert.Equal(w, []merchant.OwnedRecord{{Book: "acme", Kind: "order", ID: "1"}, {
			Book: "acme", Kind: "order",
			ID: "2",
		}}, result.Erased)
		assert.Empty(w, result.Left)
		assert.False(w, result.Unread)
		result, err = acme.EraseBuyer(w.Context(), merchant.Buyer{Document: "390.533.447/05"}, "b", "w")
		require.NoError(w, err)
		assert.Equal(w, []merchant.OwnedRecord{{Book: "acme", Kind: "order", ID: "3"}}, result.Erased)
		require.Len(w, result.Left, 1)
		assert.Equal(w, [...]string{"payout", "P1"}, [...]string{result.Left[0].Kind, result.Left[0].ID})
		require.ErrorIs(w, result.Left[0].Err, merchant.ErrState)
		w.settle(open.TransferID)
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		result, err = acme.EraseBuyer(w.Context(), merchant.Buyer{Document: zuleica.cpf, Email: zuleica.email}, "b", "w")
		require.NoError(w, err)
		assert.Equal(w, []merchant.OwnedRecord{{Book: "acme", Kind: "payout", ID: "P1"}}, result.Erased)
		assert.Empty(w, result.Left)

		o, err := acme.Order(w.Context(), "4")
		require.NoError(w, err)
		assert.True(w, o.Erased.IsZero())
		o, err = globex.Order(w.Context(), "1")
		require.NoError(w, err)
		assert.True(w, o.Erased.IsZero(), "another company's")
		assert.Equal(w, 2, w.count(`SELECT COUNT(*) FROM gateway_buyers WHERE book = 'globex'`))
	}, mockserver.WithOpeningBalance(1_000_000), mockserver.WithDialect(mockserver.Live))
}

// Charges that an earlier release has stored are read, so that their buyers are found.
func TestBuyersOfAnEarlierReleaseAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.audience().open().start()
		w.paysPerson(pix("A1", 1000))
		lost := w.paysPerson(pix("A2", 1000))
		stop()
		w.exec(`DELETE FROM gateway_buyers`)
		w.exec(`UPDATE gateway_charges SET buyer = 0`)
		w.exec(`UPDATE gateway_charges SET transaction_id = '9d2a3c1e-0000-7000-8000-000000000000', record = REPLACE(record, ?, '9d2a3c1e-0000-7000-8000-000000000000')
			WHERE id = 'shop-A2-1'`, lost.TransactionID)
		result, err := w.m.EraseBuyer(w.Context(), merchant.Buyer{Email: zuleica.email}, "b", "w")
		require.NoError(w, err)
		assert.Empty(w, result.Erased)
		assert.True(w, result.Unread)
		w.exec(`UPDATE gateway_accounts SET keep_at = NULL`)
		w.start()
		w.soon("read", func() bool {
			result, err = w.m.EraseBuyer(w.Context(), merchant.Buyer{Email: zuleica.email}, "b", "w")
			return err == nil && !result.Unread
		})
		assert.False(w, w.state("A1").Erased.IsZero())
	})
}

// What is not kept any longer goes, and what may still change stays.
func TestWhatIsNotKeptAnyLongerGoes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.audience().open().start()
		for _, id := range []string{"A1", "A2", "A3", "A4"} {
			w.paysPerson(pix(id, 1000))
		}
		open := w.charge(zuleica.buys(pix(w.order("A5"), 1000)))
		failed := w.charge(zuleica.buys(pix(w.order("A6"), 1000)))
		require.NoError(w, w.gw.Transactions.Expire(failed.TransactionID))
		w.refresh(failed.ID)
		sale := zuleica.buysAt(w, w.link(mug("mug-2", 1500)))
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		w.refund(merchant.RefundParams{ID: "R4", Order: "A4", UpTo: 400})
		require.NoError(w, w.m.Idle(w.Context()))
		stop()
		age := func(days int, charges ...string) {
			by := (time.Duration(days) * 24 * time.Hour).Milliseconds()
			for _, id := range charges {
				w.records("gateway_charges", id, func(r map[string]any) {
					is, ok := r["Books"].(map[string]any)
					require.True(w, ok)
					for _, name := range []string{"PaidAt", "UpdatedAt"} {
						if s, ok := is[name].(string); ok {
							at, err := time.Parse(time.RFC3339Nano, s)
							require.NoError(w, err)
							is[name] = at.AddDate(0, 0, -days)
						}
					}
					if s, ok := r["ExpiresAt"].(string); ok {
						at, err := time.Parse(time.RFC3339Nano, s)
						require.NoError(w, err)
						r["ExpiresAt"] = at.AddDate(0, 0, -days)
					}
				})
				w.exec(`UPDATE gateway_charges SET created_at = created_at - ? WHERE id = ?`, by, id)
				w.exec(`UPDATE gateway_orders SET ends_at = ends_at - ? WHERE subject = (SELECT subject FROM gateway_charges WHERE id = ?)`, by, id)
			}
		}
		age(300, "shop-A1-1", "shop-A5-1", sale) // 120 days after the end of what was paid
		age(220, "shop-A2-1")                    // 40 days
		age(110, "shop-A6-1")
		age(170, "shop-A3-1") // it is still compared
		age(300, "shop-A4-1")
		w.exec(`UPDATE gateway_refunds SET state = 'unknown', record = REPLACE(record, '"Operation":"applied"', '"Operation":"sent"') WHERE id = 'R4'`)
		w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE kind = 'transactions.refund'`)
		w.cfg.Keep = merchant.Keep{Buyers: 100 * 24 * time.Hour, Operations: 30 * 24 * time.Hour}
		w.exec(`UPDATE gateway_accounts SET keep_at = NULL`)
		w.open()
		stop = w.start()
		w.soon("looked at", func() bool {
			return w.count(`SELECT COUNT(*) FROM gateway_accounts WHERE keep_at > 0`) == 1 &&
				!w.state("A6").Erased.IsZero()
		})
		w.quiet(`SELECT COUNT(*) FROM gateway_orders WHERE ends_at < 1000`)
		stop()
		erased, operations := make(map[string]bool), make(map[string]bool)
		for i := range 6 {
			id := fmt.Sprint("A", i+1)
			o := w.state(id)
			erased[id] = !o.Erased.IsZero()
			assert.Len(w, o.Charges, 1)
			operations[id] = w.count(`SELECT COUNT(*) FROM gateway_operations WHERE key = 'shop-`+id+`-1'`) == 1
		}
		assert.Equal(w, map[string]bool{"A1": true, "A2": false, "A3": false, "A4": false, "A5": false, "A6": true}, erased)
		assert.Equal(w, map[string]bool{"A1": false, "A2": false, "A3": true, "A4": true, "A5": true, "A6": false},
			operations)
		r, err := w.m.Record(w.Context(), "", "charge", sale)
		require.NoError(w, err)
		assert.False(w, r.Order.Charges[0].Erased.IsZero())
		assert.Equal(w, 3,
			w.count(`SELECT COUNT(*) FROM gateway_notes WHERE decided_by = 'Config.Keep' AND why = 'kept for 2400h0m0s after its end'`))
		assert.NotEmpty(w, open.PixCode)
	})
}

// Settings that make no sense are rejected.
func TestKeepIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite)
	for field, keep := range map[string]merchant.Keep{
		"Config.Keep.Buyers": {Buyers: -1}, "Config.Keep.Operations": {Operations: -1}, "Config.Keep.Events": {Events: -1},
		"Config.Keep.Unknown":                      {Unknown: -1},
		"Config.Keep.Events must be 0 or at least": {Events: time.Hour},
	} {
		w.cfg.Keep = keep
		_, err := w.openOn(w.db, w.cfg)
		require.ErrorContains(t, err, field)
	}
}

// What events are about that is in no record is listed for as long as is wanted.
func TestUnknownIsKeptAsLongAsWanted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Keep.Unknown = 48 * time.Hour
		w.open()
		ages := func(hours int) {
			w.exec(`UPDATE gateway_unknown SET last_at = last_at - ?`,
				(time.Duration(hours) * time.Hour).Milliseconds())
		}
		body := `{"id":"evt-1","event":"transaction","type":"transaction.paid","data":{"id":"9d2a3c1e-0000-7000-8000-000000000000","correlation_id":"old-1"}}`
		response := httptest.NewRecorder()
		w.m.Webhook("shop").ServeHTTP(response, webhooktest.Signed(w.gw.Secret(), []byte(body)))
		require.Equal(w, http.StatusOK, response.Code)
		w.start()
		w.soon("seen", func() bool { return w.health().Unknown == 1 })
		ages(47)
		assert.Equal(w, 1, w.health().Unknown)
		ages(2)
		assert.Zero(w, w.health().Unknown)
	})
}

// What has ended is found by an index, however many orders there are.
func TestTheSearchForWhatHasEndedReadsAnIndex(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Keep = merchant.Keep{Buyers: time.Hour, Operations: time.Hour}
		w.open()
		w.exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
			INSERT INTO gateway_orders (book, subject, currency, paid, fee, refunded, disputed, paid_out, adjusted, settled_by, ends_at)
			SELECT 'shop', 'order/' || i, 'BRL', 0, 0, 0, 0, 0, 0, '', %d FROM n`, time.Now().UnixMilli()))
		w.exec(`ANALYZE`)
		tap, db := w.tapped(nil)
		w.db = db
		w.open()
		tap.statements() // those of Open
		seen := make(map[string]bool)
		stop := w.start()
		w.soon("looked for", func() bool {
			for statement, args := range tap.statements() {
				if !strings.HasPrefix(statement, "SELECT") || !strings.Contains(statement, "ends_at <=") {
					continue
				}
				var values []any
				for _, arg := range args {
					values = append(values, arg.Value)
				}
				plan := strings.Join(w.plan(statement, values), "\n")
				for _, index := range []string{"gateway_orders_kept", "gateway_orders_unpurged"} {
					seen[index] = seen[index] || strings.Contains(plan, index)
				}
			}
			return len(seen) == 2 && seen["gateway_orders_kept"] && seen["gateway_orders_unpurged"]
		})
		stop()
	})
}

// An erasure among refunds, readings, events and other erasures loses no money, and erases all.
func TestAnErasureAmongOtherWork(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		stop := w.audience().open().start()
		c := w.paysPerson(pix("A1", 1000))
		other := w.process()
		var all sync.WaitGroup
		fails := func(err error) {
			if err != nil {
				assert.ErrorIs(w, err, merchant.ErrState)
			}
		}
		for i := range 4 {
			all.Go(func() { fails(w.erase(merchant.EraseParams{Order: "A1"})) })
			all.Go(func() {
				result, err := other.EraseBuyer(w.Context(), merchant.Buyer{Email: zuleica.email}, "b", "w")
				fails(err)
				for _, left := range result.Left {
					fails(left.Err)
				}
			})
			all.Go(func() {
				_, err := other.Refund(w.Context(), merchant.RefundParams{
					ID: fmt.Sprint("R", i), Order: "A1", Amount: 100, Reason: zuleica.name,
				})
				assert.NoError(w, err)
			})
			all.Go(func() { assert.NoError(w, w.m.Refresh(w.Context(), c.ID)) })
			all.Go(func() {
				again, err := w.m.Charge(w.Context(), zuleica.buys(pix("A1", 1000)))
				if assert.NoError(w, err) {
					assert.Equal(w, c.ID, again.ID)
				}
			})
		}
		all.Wait()
		w.eventually("refunded", func() bool { return w.state("A1").Refunded == 400 })
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		stop()
		require.NoError(w, w.erase(merchant.EraseParams{Order: "A1"}))
		assert.Empty(w, w.holds(zuleica.texts()...))
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_notes`))
		assert.Equal(w, int64(600), w.state("A1").Left())
	})
}
