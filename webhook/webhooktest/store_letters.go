package webhooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

func (c *checker) letters(s webhook.Store, q webhook.DeadLetterQuery) []webhook.DeadLetter {
	c.t.Helper()
	dead, err := s.DeadLetters(context.Background(), q)
	c.must(err)
	return dead
}

func letterIDs(dead []webhook.DeadLetter) []string {
	var ids []string
	for _, d := range dead {
		ids = append(ids, d.EventID)
	}
	return ids
}

func (c *checker) makeDead(s webhook.Store, r webhook.Record) {
	c.t.Helper()
	c.putNew(s, r)
	c.must(s.Settle(context.Background(), c.claim(s, r.Key), dead("no such order")))
}

func storePages(c *checker, s webhook.Store) {
	const letters = 7
	for i := range letters {
		c.makeDead(s, rec(fmt.Sprintf("e%d", i), fmt.Sprintf("tx%d", i)))
	}
	want := letterIDs(c.letters(s, webhook.DeadLetterQuery{}))
	c.need(len(want) == letters, "%d dead letters, want %d", len(want), letters)
	var got []string
	for q := (webhook.DeadLetterQuery{Limit: 3}); ; {
		page := c.letters(s, q)
		if len(page) == 0 {
			break
		}
		c.need(len(page) <= 3 && len(got) < letters, "a page has %d dead letters, after %d", len(page), len(got))
		got = append(got, letterIDs(page)...)
		q.After = page[len(page)-1].Cursor
		// The cursor is valid for the next page even if its own letter is gone.
		_, err := s.Requeue(context.Background(), page[len(page)-1].Key)
		c.must(err)
	}
	c.that(slices.Equal(got, want), "the pages have %v, want %v", got, want)
}

func storeSelected(c *checker, s webhook.Store) {
	refund := rec("e2", "tx2")
	refund.Kind = webhook.TransactionRefunded
	c.makeDead(s, rec("e1", "tx1"))
	c.makeDead(s, refund)
	young := time.Now().Add(24 * time.Hour) // this clock may differ from the store's
	for _, one := range []struct {
		filter webhook.DeadLetterFilter
		want   []string
	}{
		{webhook.DeadLetterFilter{}, []string{"e1", "e2"}},
		{webhook.DeadLetterFilter{Kind: webhook.TransactionRefunded}, []string{"e2"}},
		{webhook.DeadLetterFilter{Kind: webhook.TransactionChargedback}, nil},
		{webhook.DeadLetterFilter{Resource: "transaction/tx1"}, []string{"e1"}},
		{webhook.DeadLetterFilter{Resource: "transaction/tx1", Kind: webhook.TransactionRefunded}, nil},
		{webhook.DeadLetterFilter{Since: young.Add(-48 * time.Hour)}, []string{"e1", "e2"}},
		{webhook.DeadLetterFilter{Since: young}, nil},
	} {
		got := letterIDs(c.letters(s, webhook.DeadLetterQuery{DeadLetterFilter: one.filter}))
		c.that(slices.Equal(got, one.want), "%+v selected %v, want %v", one.filter, got, one.want)
	}
	last := c.letters(s, webhook.DeadLetterQuery{})[1]
	got := letterIDs(c.letters(s, webhook.DeadLetterQuery{DeadLetterFilter: webhook.DeadLetterFilter{Since: last.Since}}))
	c.that(slices.Contains(got, "e2"), "Since excludes a dead letter of that very time")
}

func storeInvalidQueries(c *checker, s webhook.Store) {
	for _, q := range []webhook.DeadLetterQuery{{Limit: -1}, {Limit: 1001}, {After: "nowhere"}, {After: "1.x"}} {
		_, err := s.DeadLetters(context.Background(), q)
		c.that(err != nil, "DeadLetters(%+v) returned no error", q)
	}
}

func storeDiscard(c *checker, s webhook.Store) {
	ctx := context.Background()
	first := rec("e1", "tx")
	first.Position = 7
	c.makeDead(s, first)
	c.putNew(s, rec("e2", "tx"))
	n, err := s.Discard(ctx, "id e1", "id unknown", "id e2", "id e1")
	c.must(err)
	c.that(n == 1, "Discard returned %d, want 1: a waiting event is not a dead letter", n)
	e := c.put(s, first)
	c.that(e == webhook.Entry{Key: "id e1", State: webhook.StateDone}, "Put of a discarded event returned %+v", e)
	c.that(c.claim(s, "id e2").Latest == 0, "Latest counts a discarded event, which was not handled")
	c.that(len(c.letters(s, webhook.DeadLetterQuery{})) == 0, "a discarded dead letter is listed")
}

func storePutDead(c *checker, s webhook.Store) {
	ctx := context.Background()
	for i, added := range []bool{true, false} {
		e, err := s.PutDead(ctx, rec("e1", "tx"), "strange")
		c.must(err)
		c.that(e == webhook.Entry{Key: "id e1", State: webhook.StateDead, Added: added}, "PutDead number %d returned %+v", i+1, e)
	}
	c.that(len(c.next(s, 10)) == 0, "a dead letter was claimed")
	dead := c.letters(s, webhook.DeadLetterQuery{})
	c.need(len(dead) == 1 && dead[0].Reason == "strange" && len(dead[0].Body) > 0, "DeadLetters returned %+v, want one with its reason and body", dead)
	_, err := s.Requeue(ctx, "id e1")
	c.must(err)
	c.that(c.claim(s, "id e1").Attempt == 1, "a requeued event must start at attempt 1")
}

func storeConflict(c *checker, s webhook.Store) {
	first, other, unknown := rec("e1", "tx"), rec("e1", "tx"), rec("e1", "tx")
	first.Digest, other.Digest = "one", "another"
	c.putNew(s, first)
	expect := func(r webhook.Record, want bool, when string) {
		c.t.Helper()
		e := c.put(s, r)
		c.that(e.Key == "id e1" && !e.Added && e.Conflict == want, "%s, Put with the digest %q returned %+v", when, r.Digest, e)
	}
	expect(first, false, "while it waits")
	expect(other, true, "while it waits")
	expect(unknown, false, "while it waits")
	claim := c.claim(s, "id e1")
	c.that(claim.Digest == "one", "the digest is %q", claim.Digest)
	c.must(s.Settle(context.Background(), claim, done))
	expect(first, false, "when it is done")
	expect(other, true, "when it is done")
}

// handling simulates a process with handlers for only these kinds.
func handling(kinds ...webhook.Kind) func(webhook.Family, webhook.Kind) bool {
	return func(_ webhook.Family, k webhook.Kind) bool { return slices.Contains(kinds, k) }
}

func (c *checker) nextUnhandled(s webhook.Store, limit int, kinds ...webhook.Kind) []*webhook.Claim {
	c.t.Helper()
	claims, err := s.NextUnhandled(context.Background(), handling(kinds...), limit, lease)
	c.must(err)
	c.need(len(claims) <= limit, "NextUnhandled returned %d claims, the limit is %d", len(claims), limit)
	return claims
}

func (c *checker) setAside(s webhook.Store, r webhook.Record) {
	c.t.Helper()
	c.putNew(s, r)
	c.must(s.Settle(context.Background(), c.claim(s, r.Key), aside(webhook.FamilyTransaction)))
}

func storeUnhandled(c *checker, s webhook.Store) {
	ctx := context.Background()
	refund := rec("e3", "tx3")
	refund.Kind = webhook.TransactionRefunded
	c.setAside(s, rec("e1", "tx1"))
	c.setAside(s, rec("e2", "tx2"))
	c.setAside(s, refund)
	c.that(len(c.next(s, 10)) == 0, "Next returned an unhandled event")
	e := c.put(s, refund)
	c.that(e == webhook.Entry{Key: "id e3", State: webhook.StateUnhandled}, "Put of an unhandled event returned %+v", e)
	n, err := s.Counts(ctx)
	c.must(err)
	c.that(n == webhook.Counts{Unhandled: 3}, "Counts returned %+v, want 3 unhandled", n)
	list, err := s.Unhandled(ctx)
	c.must(err)
	c.need(len(list) == 2, "Unhandled returned %+v, want 2 kinds", list)
	c.that(list[0].Kind == webhook.TransactionPaid && list[0].Events == 2 && list[0].Family == webhook.FamilyTransaction &&
		!list[0].Since.IsZero() && list[1].Kind == webhook.TransactionRefunded && list[1].Events == 1,
		"Unhandled returned %+v, want 2 transaction.paid and 1 transaction.refunded", list)

	c.that(len(c.nextUnhandled(s, 10, webhook.TransactionPending)) == 0, "NextUnhandled returned a kind that the process does not handle")
	claims := c.nextUnhandled(s, 10, webhook.TransactionRefunded, webhook.TransactionPending)
	c.need(slices.Equal(eventIDs(claims), []string{"e3"}), "NextUnhandled returned %v, want e3", eventIDs(claims))
	c.that(claims[0].Attempt == 1 && len(claims[0].Body) > 0, "an event set aside must start at attempt 1 with its body: %+v", claims[0])
	c.must(s.Settle(ctx, claims[0], done))
	c.putKnown(s, refund, "id e3", webhook.StateDone)
	c.that(len(c.nextUnhandled(s, 1, webhook.TransactionPaid)) == 1, "want 1 claim")
	c.that(len(c.nextUnhandled(s, 9, webhook.TransactionPaid)) == 1, "the remaining event was not claimed")
	c.that(len(c.nextUnhandled(s, 9, webhook.TransactionPaid)) == 0, "an event was claimed twice")
}

func storeUnhandledQueue(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.setAside(s, rec("e1", "tx1"))
	claim := c.claim(s, "id e1") // by a delivery to a process that has a handler
	c.must(s.Settle(ctx, claim, retry(0, "no database")))
	c.that(len(c.next(s, 10)) == 0, "Next returned a retried event of the unhandled queue")
	claims := c.nextUnhandled(s, 10, webhook.TransactionPaid)
	c.need(len(claims) == 1 && claims[0].Attempt == 2, "NextUnhandled returned %v, want one event at attempt 2", eventIDs(claims))
	c.must(s.Settle(ctx, claims[0], released))
	claims = c.nextUnhandled(s, 10, webhook.TransactionPaid)
	c.need(len(claims) == 1 && claims[0].Attempt == 2, "NextUnhandled returned %v, want one event at attempt 2", eventIDs(claims))
	c.must(s.Settle(ctx, claims[0], retry(time.Hour, "no database")))
	c.that(len(c.nextUnhandled(s, 10, webhook.TransactionPaid)) == 0, "an event was claimed within its backoff")
	_, entry, err := s.Claim(ctx, "id e1", lease)
	c.must(err)
	c.that(entry.State == webhook.StateUnhandled && soonAfter(entry.Wait, time.Hour), "Claim within a backoff of an hour returned %+v", entry)

	c.setAside(s, rec("e2", "tx2"))
	old, err := s.NextUnhandled(ctx, handling(webhook.TransactionPaid), 1, 50*time.Millisecond)
	c.must(err)
	c.need(len(old) == 1, "NextUnhandled returned %v, want one event", eventIDs(old))
	c.need(soon(func() bool {
		claims = c.nextUnhandled(s, 1, webhook.TransactionPaid)
		return len(claims) > 0
	}), "an unhandled event was not claimed again after its lease")
	c.that(errors.Is(s.Settle(ctx, old[0], done), webhook.ErrClaimLost), "a process whose lease had expired completed the event")
	c.must(s.Settle(ctx, claims[0], dead("no such order")))
	c.that(len(c.letters(s, webhook.DeadLetterQuery{})) == 1, "the dead letter is missing")
}

func storeUnhandledBlocksNone(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.setAside(s, rec("e1", "tx"))
	c.putNew(s, rec("e2", "tx"))
	claims := c.nextAre(s, 10, "e2")
	c.that(len(c.nextUnhandled(s, 10, webhook.TransactionPaid)) == 0, "two events of one resource are claimed")
	c.must(s.Settle(ctx, claims[0], done))
	c.that(len(c.nextUnhandled(s, 10, webhook.TransactionPaid)) == 1, "an event of a free resource was not claimed")
}
