package money_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
	"github.com/gateway-go/gateway/contrib/mcp/money"
	"github.com/gateway-go/gateway/mockserver"
)

// till is a plane whose clock a test sets.
type till struct {
	t       *testing.T
	server  *mockserver.Server
	journal *intent.Journal
	plane   *money.Plane
	now     time.Time
	kind    intent.Kind
	id      string // of the intent
}

func open(t *testing.T, kind intent.Kind) *till {
	t.Helper()
	c := &till{t: t, server: mockserver.Run(t, mockserver.WithOpeningBalance(1e9)), now: time.Now(), kind: kind}
	limits := intent.Limits{
		{Kind: intent.Payout, Currency: "BRL"}: {Day: 1e6, Each: 1e6}, {Kind: intent.Charge, Currency: "BRL"}: {Day: 1e6, Each: 1e6},
	}
	now := func() time.Time { return c.now }
	var err error
	c.journal, err = intent.Open(filepath.Join(t.TempDir(), "journal"), intent.Config{Account: "shop", Limits: limits, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.journal.Close() })
	sealer, err := intent.NewSealer(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	c.plane, err = money.NewPlane(money.Config{Client: c.server.Client(gateway.WithMaxAttempts(1)), Journal: c.journal, Sealer: sealer, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	c.id = c.prepare()
	return c
}

// prepare prepares invoice 17 and approves it.
func (c *till) prepare() string {
	c.t.Helper()
	var r *money.Result
	if c.kind == intent.Payout {
		r = c.plane.Payout(c.t.Context(), money.PayoutInput{For: "invoice 17", PixKeyType: "EMAIL", PixKey: "ana@example.com", Amount: amount})
	} else {
		r = c.plane.Charge(c.t.Context(), money.ChargeInput{
			For: "invoice 17", Method: "pix", Amount: amount, Product: "Mug",
			Buyer: money.BuyerInput{Name: "Ana", Email: "ana@example.com", DocumentType: "CPF", Document: document},
		})
	}
	if _, err := c.journal.Decide("", r.Intent, 0, true, intent.ViaTerminal); err != nil {
		c.t.Fatal(err)
	}
	return r.Intent
}

func (c *till) commit() *money.Result {
	r, _, _, _ := c.plane.Commit(context.Background(), c.id, false, "", false, false)
	return r
}

// on names an operation of the kind.
func (c *till) on(name string) string {
	if c.kind == intent.Payout {
		return "transfers." + name
	}
	return "transactions." + name
}

func (c *till) add(faults ...mockserver.Fault) {
	c.t.Helper()
	if err := c.server.Faults.Add(faults...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *till) made() int {
	c.t.Helper()
	if c.kind == intent.Payout {
		all, err := gateway.Collect(c.server.Client().Transfers.All(c.t.Context(), gateway.TransferListParams{}), 0)
		if err != nil {
			c.t.Fatal(err)
		}
		return len(all)
	}
	all, err := gateway.Collect(c.server.Client().Transactions.All(c.t.Context(), gateway.TransactionListParams{}), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return len(all)
}

// reject commits until the plane sends nothing any more.
func (c *till) reject(status int) {
	c.t.Helper()
	c.add(mockserver.Status(status).On(c.on("create")))
	for n := range intent.Reads {
		if r := c.commit(); r.State != "unknown" || r.Sentinel != "ErrOutcomeUnknown" {
			c.t.Fatalf("rejection %d: %+v", n, r)
		}
	}
	sent := c.server.Requests.Count(c.on("create"))
	if r := c.commit(); r.State != "unknown" || !r.Failed() || r.RetryAt == "" {
		c.t.Errorf("a read that is too early: %+v", r)
	}
	if now := c.server.Requests.Count(c.on("create")); now != sent {
		c.t.Errorf("%d requests were sent after the rejections", now-sent)
	}
	c.now = c.now.Add(2 * time.Minute)
}

func kinds(t *testing.T, test func(t *testing.T, c *till)) {
	t.Helper()
	for _, kind := range []intent.Kind{intent.Payout, intent.Charge} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, open(t, kind))
		})
	}
}

// A request was lost, and its repeats are rejected: three reads show that it was not
// applied.
func TestARejectedRepeatIsRefusedOnceReadsShowNothing(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, c *till) {
		t.Helper()
		c.add(mockserver.ResetBefore().On(c.on("create")).Times(1))
		if r := c.commit(); r.State != "unknown" {
			t.Fatalf("after a reset: %+v", r)
		}
		c.reject(422)
		for n := range intent.Reads {
			r := c.commit()
			if want := map[bool]string{true: "refused", false: "unknown"}[n == intent.Reads-1]; r.State != want || !r.Failed() {
				t.Fatalf("read %d: %+v", n, r)
			} else if want == "refused" && (r.Sentinel != "ErrValidation" || r.MayRetry) {
				t.Errorf("refused: %+v", r)
			}
			c.now = c.now.Add(time.Minute)
		}
		first, err := c.journal.Get("", c.id)
		if err != nil || first.Repeat() {
			t.Errorf("the refused intent is %+v, %v", first, err)
		}
		// The same purpose may be prepared again, under the same reference.
		c.server.Faults.Clear()
		c.id = c.prepare()
		second, err := c.journal.Get("", c.id)
		if err != nil || second.ID == first.ID || second.Reference != first.Reference {
			t.Errorf("prepared again: %+v, %v", second, err)
		}
		if r := c.commit(); r.State != "done" || c.made() != 1 {
			t.Errorf("the second intent is %+v, %d are made", r, c.made())
		}
	})
}

// The request was applied, and neither the rejections nor the first reads show it.
func TestARejectedRepeatIsDoneIfAReadShowsIt(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, c *till) {
		t.Helper()
		c.add(mockserver.LoseResponse().On(c.on("create")).Times(1), mockserver.Status(503).On(c.on("list")).Times(intent.Reads+1))
		if r := c.commit(); r.State != "unknown" {
			t.Fatalf("after a lost response: %+v", r)
		}
		c.reject(422)
		if r := c.commit(); r.State != "unknown" || !r.MayRetry {
			t.Errorf("a read that failed: %+v", r)
		}
		if r := c.commit(); r.State != "done" || r.Failed() || r.Resource == nil || c.made() != 1 {
			t.Errorf("a read that shows it: %+v", r)
		}
		if again := c.commit(); again.State != "done" || c.made() != 1 {
			t.Errorf("again: %+v", again)
		}
	})
}

// A gateway that says that it has the reference, and does not show it, contradicts itself.
func TestAContradictionIsForAPerson(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, c *till) {
		t.Helper()
		c.add(mockserver.ResetBefore().On(c.on("create")).Times(1))
		c.commit()
		c.reject(409)
		for range 2 * intent.Reads {
			i, err := c.journal.Get("", c.id)
			if err != nil {
				t.Fatal(err)
			}
			r := c.commit()
			if r.State != "unknown" || r.MayRetry || !strings.Contains(r.DoNext, i.Reference) || !strings.Contains(r.DoNext, "only a person") {
				t.Fatalf("after rejections as a duplicate: %+v", r)
			}
			c.now = c.now.Add(time.Minute)
		}
		if i, err := c.journal.Get("", c.id); err != nil || len(i.History) > 12 {
			t.Errorf("each look adds to the journal: %+v, %v", i, err)
		}
		if _, err := c.journal.Cancel("", c.id); err == nil {
			t.Error("an intent that may have been paid is canceled")
		}
	})
}

// Another program of the merchant used the reference.
func TestAResourceThatDiffersIsForAPerson(t *testing.T) {
	t.Parallel()
	c := open(t, intent.Payout)
	i, err := c.journal.Get("", c.id)
	if err != nil {
		t.Fatal(err)
	}
	c.add(mockserver.ResetBefore().On(c.on("create")).Times(1), mockserver.Status(503).On(c.on("list")).Times(intent.Reads))
	c.commit()
	if _, err := c.server.Client().Transfers.Create(t.Context(), gateway.TransferParams{
		ExternalRef: i.Reference, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: edited,
	}); err != nil {
		t.Fatal(err)
	}
	c.reject(422)
	if r := c.commit(); r.State != "unknown" || r.MayRetry || !strings.Contains(r.DoNext, "another payee or amount") {
		t.Errorf("the list has another payout with the reference: %+v", r)
	}
}

// A duplicate that the client has compared is certain, also for a repeat.
func TestARepeatWhoseReferenceBelongsToAnotherIsRefused(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, c *till) {
		t.Helper()
		i, err := c.journal.Get("", c.id)
		if err != nil {
			t.Fatal(err)
		}
		c.add(mockserver.ResetBefore().On(c.on("create")).Times(1))
		c.commit()
		client := c.server.Client()
		if c.kind == intent.Payout {
			_, err = client.Transfers.Create(t.Context(), gateway.TransferParams{
				ExternalRef: i.Reference, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: edited,
			})
		} else {
			_, err = client.Transactions.Create(t.Context(), gateway.TransactionParams{
				ExternalRef: i.Reference, Amount: edited, Method: gateway.Pix, Products: []gateway.Product{{Name: "Mug", Price: edited}},
				Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: document}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := c.commit(); r.State != "refused" || r.Sentinel != "ErrDuplicate" {
			t.Errorf("the repeat: %+v", r)
		}
	})
}

// The clock of the machine was ahead when the request was sent, and was set back since. So
// the age of a resource says nothing, and the whole list is read.
func TestASearchAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	c := open(t, intent.Payout)
	c.add(mockserver.LoseResponse().On(c.on("create")).Times(1), mockserver.Status(503).On(c.on("list")).Times(intent.Reads))
	c.now = c.now.Add(20 * time.Hour)
	c.commit()
	c.now = c.now.Add(-20 * time.Hour)
	if err := c.server.Clock.Advance(50 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := c.server.Client().Transfers.Create(t.Context(), gateway.TransferParams{
		ExternalRef: "newer", PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: edited,
	}); err != nil {
		t.Fatal(err)
	}
	c.reject(422)
	if r := c.commit(); r.State != "done" {
		t.Errorf("a payout that is far down the list: %+v", r)
	}
}
