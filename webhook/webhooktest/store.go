package webhooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

// RunStore checks that a store satisfies the contract of [webhook.Store], for the
// store itself and for its view of one of several accounts. open must return a
// new empty store on every call. The lease checks take a few seconds of wall
// time.
func RunStore(t TB, open func() webhook.Store) {
	t.Helper()
	for _, one := range []storeCheck{
		{"events of several accounts", storeAccountsAreIsolated},
		{"facts of several accounts", storeFactsOfAccounts},
		{"views of an account", storeViewsOfAnAccount},
	} {
		check(t, one.name, func(c *checker) {
			c.t.Helper()
			one.do(c, open())
		})
	}
	for _, one := range storeChecks() {
		check(t, one.name, func(c *checker) {
			c.t.Helper()
			one.do(c, open())
		})
		check(t, one.name+", in a second account", func(c *checker) {
			c.t.Helper()
			one.do(c, secondAccount(c, open()))
		})
	}
}

type storeCheck struct {
	name string
	do   func(*checker, webhook.Store)
}

func storeChecks() []storeCheck {
	return []storeCheck{
		{"put and claim", storePutAndClaim},
		{"one entry per key", storeOneEntryPerKey},
		{"a claim returns the stored event", storeKeepsTheEvent},
		{"one event of a resource at a time", storeOneOfAResource},
		{"next takes what is due, in order", storeNextInOrder},
		{"a busy resource with a long queue", storeLongQueue},
		{"retry", storeRetry},
		{"a backoff", storeBackoff},
		{"release", storeRelease},
		{"dead letters", storeDeadLetters},
		{"pages of dead letters", storePages},
		{"selected dead letters", storeSelected},
		{"invalid queries of dead letters", storeInvalidQueries},
		{"discarded dead letters", storeDiscard},
		{"events put as dead letters", storePutDead},
		{"events without a handler", storeUnhandled},
		{"an unhandled event stays in its queue", storeUnhandledQueue},
		{"an unhandled event does not block others", storeUnhandledBlocksNone},
		{"a different event with a known id", storeConflict},
		{"an expired lease", storeLeaseRunsOut},
		{"leases that expire in a row", storeLeasesRunOut},
		{"an extended lease", storeExtend},
		{"an old token", storeOldToken},
		{"positions", storePositions},
		{"confirmed events of one fact", storeFacts},
		{"a confirmed event after the signed one", storeConfirmedAfterSigned},
		{"a signed event after the confirmed one", storeSignedAfterConfirmed},
		{"a signed event with the id of a confirmed one", storeSameID},
		{"concurrent puts of one fact", storeConcurrentFacts},
		{"concurrent claims", storeConcurrentClaims},
		{"concurrent puts", storeConcurrentPuts},
		{"concurrent endings", storeConcurrentEndings},
		{"counts", storeCounts},
		{"unusual strings", storeOddTexts},
	}
}

const lease = time.Minute

// rec returns a signed event without a fact.
func rec(id, resource string) webhook.Record {
	return webhook.Record{
		Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + resource,
		Signed: true, Source: webhook.SourceDelivery, Body: []byte(`{"id":"` + id + `"}`),
	}
}

func signedFact(id, fact string) webhook.Record {
	r := rec(id, "tx")
	r.Fact = fact
	return r
}

func confirmedFact(id, fact string) webhook.Record {
	r := signedFact(id, fact)
	r.Key, r.Signed, r.Confirmed = "fact "+fact, false, []byte(`{"id":"tx"}`)
	return r
}

func (c *checker) put(s webhook.Store, r webhook.Record) webhook.Entry {
	c.t.Helper()
	e, err := s.Put(context.Background(), r)
	c.must(err)
	return e
}

func (c *checker) putNew(s webhook.Store, records ...webhook.Record) {
	c.t.Helper()
	for _, r := range records {
		e := c.put(s, r)
		c.need(e == webhook.Entry{Key: r.Key, State: webhook.StateWaiting, Added: true}, "Put of the new %q returned %+v", r.Key, e)
	}
}

func (c *checker) claim(s webhook.Store, key string) *webhook.Claim {
	c.t.Helper()
	claim, entry, err := s.Claim(context.Background(), key, lease)
	c.must(err)
	c.need(claim != nil && entry.State == webhook.StateClaimed, "Claim of the waiting %q returned %v, %+v", key, claim, entry)
	return claim
}

func (c *checker) refused(s webhook.Store, key string, want webhook.State) {
	c.t.Helper()
	claim, entry, err := s.Claim(context.Background(), key, lease)
	c.must(err)
	c.need(claim == nil && entry.State == want, "Claim of %q returned %v, %+v; want no claim, state %d", key, claim, entry, want)
}

func (c *checker) next(s webhook.Store, limit int) []*webhook.Claim {
	c.t.Helper()
	claims, err := s.Next(context.Background(), limit, lease)
	c.must(err)
	c.need(len(claims) <= limit, "Next returned %d claims, the limit is %d", len(claims), limit)
	return claims
}

// nextAre calls next, and stops the check unless it returns these events.
func (c *checker) nextAre(s webhook.Store, limit int, want ...string) []*webhook.Claim {
	c.t.Helper()
	claims := c.next(s, limit)
	c.need(slices.Equal(eventIDs(claims), want), "Next returned %v, want %v", eventIDs(claims), want)
	return claims
}

func eventIDs(claims []*webhook.Claim) []string {
	var ids []string
	for _, cl := range claims {
		ids = append(ids, cl.EventID)
	}
	return ids
}

// soon polls for up to ten seconds: the clock of a database can't be set.
func soon(ok func() bool) bool {
	for giveUp := time.Now().Add(10 * time.Second); time.Now().Before(giveUp); {
		if ok() {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

func storePutAndClaim(c *checker, s webhook.Store) {
	c.putNew(s, rec("e1", "tx"))
	claim := c.claim(s, "id e1")
	c.refused(s, "id e1", webhook.StateClaimed)
	c.must(s.Settle(context.Background(), claim, done))
	c.refused(s, "id e1", webhook.StateDone)
	e := c.put(s, rec("e1", "tx"))
	c.that(e == webhook.Entry{Key: "id e1", State: webhook.StateDone}, "Put of a done event returned %+v", e)
	c.that(len(c.next(s, 10)) == 0, "Next returned an event that is done")
	if _, _, err := s.Claim(context.Background(), "id unknown", lease); err == nil {
		c.errorf("Claim of an unknown key returned no error")
	}
}

func storeOneEntryPerKey(c *checker, s webhook.Store) {
	var added sync.Map
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			e, err := s.Put(context.Background(), rec("e1", "tx"))
			c.that(err == nil && e.Key == "id e1", "Put returned %+v, %v", e, err)
			if e.Added {
				added.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	added.Range(func(any, any) bool { n++; return true })
	c.that(n == 1, "%d of 16 concurrent Puts of one event returned Added, want 1", n)
}

func storeKeepsTheEvent(c *checker, s webhook.Store) {
	want := confirmedFact("e1", "f")
	want.Position, want.Late, want.Source = 7<<40, true, webhook.SourceReconciler
	want.Body, want.Digest, want.KeyID, want.Trace = []byte("\x00\xff any bytes"), "d1", "k1", "t1"
	c.putNew(s, want)
	got := c.claim(s, want.Key)
	c.that(got.Attempt == 1 && got.Latest == 0 && got.Token != "", "the claim is %+v", got)
	c.that(string(got.Body) == string(want.Body) && string(got.Confirmed) == string(want.Confirmed), "body %q, confirmed %q", got.Body, got.Confirmed)
	c.that(got.EventID == want.EventID && got.Kind == want.Kind && got.Resource == want.Resource && got.Fact == want.Fact &&
		got.Signed == want.Signed && got.Late == want.Late && got.Source == want.Source && got.Position == want.Position &&
		got.Digest == want.Digest && got.KeyID == want.KeyID && got.Trace == want.Trace,
		"put %+v, claimed %+v", want, got.Record)
}

func storeOneOfAResource(c *checker, s webhook.Store) {
	c.putNew(s, rec("e1", "tx"), rec("e2", "tx"), rec("e3", "other"))
	first := c.claim(s, "id e1")
	c.refused(s, "id e2", webhook.StateWaiting)
	c.nextAre(s, 10, "e3")
	c.must(s.Settle(context.Background(), first, done))
	c.nextAre(s, 10, "e2")
}

func storeNextInOrder(c *checker, s webhook.Store) {
	for i := range 20 {
		c.putNew(s, rec(fmt.Sprintf("e%02d", i), fmt.Sprintf("tx%d", i/2)))
	}
	claims := c.nextAre(s, 3, "e00", "e02", "e04")
	c.must(s.Settle(context.Background(), claims[1], done))
	c.nextAre(s, 2, "e03", "e06")
	c.that(len(c.next(s, 100)) == 6, "want one event of each of the 6 remaining resources")
	c.that(len(c.next(s, 100)) == 0, "an event was claimed twice")
}

func storeLongQueue(c *checker, s webhook.Store) {
	for i := range 200 {
		c.putNew(s, rec(fmt.Sprintf("e%03d", i), "busy"))
	}
	c.putNew(s, rec("last", "other"))
	c.nextAre(s, 1, "e000")
	c.nextAre(s, 1, "last")
}

func storeRetry(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"), rec("e2", "tx"))
	c.must(s.Settle(ctx, c.claim(s, "id e1"), retry(time.Hour, "no database")))
	claims := c.nextAre(s, 10, "e2")
	c.must(s.Settle(ctx, claims[0], done))
	c.putNew(s, rec("e3", "tx3"))
	c.must(s.Settle(ctx, c.claim(s, "id e3"), retry(0, "")))
	again := c.claim(s, "id e3")
	c.that(again.Attempt == 2, "attempt %d, want 2", again.Attempt)
	c.that(len(again.Body) > 0, "the body is missing")
	c.that(again.Age >= 0 && again.Age < time.Minute, "age %v of a new event", again.Age)
	c.must(s.Settle(ctx, again, retry(0, "")))
	c.need(len(c.next(s, 10)) == 1, "an event that is due was not returned")
}

// A delivery must not shorten a backoff, because anyone may replay it.
func storeBackoff(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"))
	c.must(s.Settle(ctx, c.claim(s, "id e1"), retry(time.Hour, "no database")))
	for range 3 {
		claim, entry, err := s.Claim(ctx, "id e1", lease)
		c.must(err)
		c.need(claim == nil && entry.State == webhook.StateWaiting && soonAfter(entry.Wait, time.Hour),
			"Claim within a backoff of an hour returned %v, %+v", claim, entry)
	}
	e := c.put(s, rec("e1", "tx"))
	c.that(soonAfter(e.Wait, time.Hour), "Put within a backoff of an hour returned %+v", e)
}

// soonAfter reports whether d is just below span, as the remaining time is
// shortly after the start.
func soonAfter(d, span time.Duration) bool { return d <= span && d > span-time.Minute }

var (
	done     = webhook.Disposition{State: webhook.StateDone}
	released = webhook.Disposition{State: webhook.StateWaiting, Released: true}
)

func retry(delay time.Duration, reason string) webhook.Disposition {
	return webhook.Disposition{State: webhook.StateWaiting, Delay: delay, Reason: reason}
}

func dead(reason string) webhook.Disposition {
	return webhook.Disposition{State: webhook.StateDead, Reason: reason}
}

func aside(f webhook.Family) webhook.Disposition {
	return webhook.Disposition{State: webhook.StateUnhandled, Family: f}
}

func storeRelease(c *checker, s webhook.Store) {
	c.putNew(s, rec("e1", "tx"))
	c.must(s.Settle(context.Background(), c.claim(s, "id e1"), released))
	claims := c.next(s, 1)
	c.need(len(claims) == 1 && claims[0].Attempt == 1, "a released event is due and its attempt not counted: %v", claims)
	c.putNew(s, rec("e2", "tx"))
	c.must(s.Settle(context.Background(), claims[0], released))
	claims = c.nextAre(s, 10, "e1") // before the later event of its resource
	c.that(claims[0].Expired == 0, "a release counts as an expired lease")
}

func storeDeadLetters(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"), rec("e2", "tx"))
	c.must(s.Settle(ctx, c.claim(s, "id e1"), dead("no such order")))
	c.refused(s, "id e1", webhook.StateDead)
	e := c.put(s, rec("e1", "tx"))
	c.that(e == webhook.Entry{Key: "id e1", State: webhook.StateDead}, "Put of a dead letter returned %+v", e)
	claims := c.nextAre(s, 10, "e2")
	c.must(s.Settle(ctx, claims[0], dead("either")))

	dead, err := s.DeadLetters(ctx, webhook.DeadLetterQuery{Limit: 1})
	c.must(err)
	c.need(len(dead) == 1, "DeadLetters(1) returned %d", len(dead))
	d := dead[0]
	c.that(d.Key == "id e1" && d.EventID == "e1" && d.Kind == webhook.TransactionPaid && d.Resource == "transaction/tx" &&
		d.Attempts == 1 && d.Reason == "no such order" && string(d.Body) == `{"id":"e1"}` && !d.Since.IsZero(), "the dead letter is %+v", d)
	n, err := s.Requeue(ctx, "id e1", "id unknown", "id e1")
	c.must(err)
	c.that(n == 1, "Requeue returned %d, want 1", n)
	again := c.claim(s, "id e1")
	c.that(again.Attempt == 1 && len(again.Body) > 0, "a requeued event must start at attempt 1 with its body: %+v", again)
}

func storeLeaseRunsOut(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"), rec("e2", "tx"))
	old, _, err := s.Claim(ctx, "id e1", 50*time.Millisecond)
	c.must(err)
	var claims []*webhook.Claim
	c.need(soon(func() bool { claims = c.next(s, 10); return len(claims) > 0 }), "the event of a dead process was not claimed again after its lease")
	c.need(slices.Equal(eventIDs(claims), []string{"e1"}), "Next returned %v: an event whose lease expired keeps its place", eventIDs(claims))
	c.that(errors.Is(s.Settle(ctx, old, done), webhook.ErrClaimLost), "a process whose lease had expired completed the event")
	c.must(s.Settle(ctx, claims[0], done))

	c.putNew(s, rec("e3", "tx3"))
	_, _, err = s.Claim(ctx, "id e3", 50*time.Millisecond)
	c.must(err)
	c.claimSoon(s, "id e3", lease)
}

// storeLeasesRunOut counts the attempts of an event whose processes die.
func storeLeasesRunOut(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"))
	for expired, attempt := range []int{1, 1, 1, 2, 3} { // the first two that expire don't count
		claim := c.claimSoon(s, "id e1", 50*time.Millisecond)
		c.that(claim.Expired == expired && claim.Attempt == attempt, "after %d expired leases, it is attempt %d with %d",
			expired, claim.Attempt, claim.Expired)
	}
	claim := c.claimSoon(s, "id e1", lease)
	c.must(s.Settle(ctx, claim, released))
	claim = c.claim(s, "id e1")
	c.that(claim.Expired == 5 && claim.Attempt == 4, "after a release, it is attempt %d with %d expired leases", claim.Attempt, claim.Expired)
	c.must(s.Settle(ctx, claim, retry(0, "no database")))
	claim = c.claim(s, "id e1")
	c.that(claim.Expired == 0 && claim.Attempt == 5, "after a failed attempt, it is attempt %d with %d expired leases", claim.Attempt, claim.Expired)
	c.must(s.Settle(ctx, claim, dead("no database")))

	c.putNew(s, rec("e2", "tx2"))
	c.claimSoon(s, "id e2", 50*time.Millisecond)
	claim = c.claimSoon(s, "id e2", lease)
	c.must(s.Settle(ctx, claim, dead("no such order")))
	_, err := s.Requeue(ctx, "id e2")
	c.must(err)
	claim = c.claim(s, "id e2")
	c.that(claim.Expired == 0 && claim.Attempt == 1, "a requeued event is at attempt %d with %d expired leases", claim.Attempt, claim.Expired)
}

// claimSoon claims an event as soon as the lease of its last claim has expired.
func (c *checker) claimSoon(s webhook.Store, key string, lease time.Duration) (claim *webhook.Claim) {
	c.t.Helper()
	c.need(soon(func() (claimed bool) {
		var err error
		claim, _, err = s.Claim(context.Background(), key, lease)
		c.must(err)
		return claim != nil
	}), "Claim did not take over %s, whose lease had expired", key)
	return claim
}

func storeExtend(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"))
	claim, _, err := s.Claim(ctx, "id e1", 500*time.Millisecond)
	c.must(err)
	c.must(s.Extend(ctx, claim, lease))
	<-time.After(1200 * time.Millisecond)
	c.that(len(c.next(s, 10)) == 0, "an extended lease expired too early")
	c.must(s.Settle(ctx, claim, done))
	c.that(errors.Is(s.Extend(ctx, claim, lease), webhook.ErrClaimLost), "Extend of a done event did not return ErrClaimLost")
}

func storeOldToken(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "tx"))
	old := c.claim(s, "id e1")
	c.must(s.Settle(ctx, old, released))
	now := c.claim(s, "id e1")
	c.that(now.Token != old.Token, "two claims have the same token")
	for name, do := range map[string]func() error{
		"Extend":           func() error { return s.Extend(ctx, old, lease) },
		"Settle, done":     func() error { return s.Settle(ctx, old, done) },
		"Settle, failed":   func() error { return s.Settle(ctx, old, retry(0, "")) },
		"Settle, dead":     func() error { return s.Settle(ctx, old, dead("")) },
		"Settle, released": func() error { return s.Settle(ctx, old, released) },
	} {
		err := do()
		c.that(errors.Is(err, webhook.ErrClaimLost), "%s with an old token returned %v", name, err)
	}
	c.must(s.Settle(ctx, now, done))
	c.that(errors.Is(s.Settle(ctx, now, retry(0, "")), webhook.ErrClaimLost), "Settle of a done event did not return ErrClaimLost")
}

func storePositions(c *checker, s webhook.Store) {
	ctx := context.Background()
	for i, position := range []int64{3, 1, 2} {
		r := rec(fmt.Sprintf("e%d", i), "tx")
		r.Position = position
		c.putNew(s, r)
	}
	first := c.claim(s, "id e0")
	c.that(first.Latest == 0, "latest %d, want 0", first.Latest)
	c.must(s.Settle(ctx, first, done))
	second := c.claim(s, "id e1")
	c.that(second.Latest == 3, "latest %d, want 3", second.Latest)
	c.must(s.Settle(ctx, second, dead("")))
	other := rec("e9", "other")
	c.putNew(s, other)
	c.that(c.claim(s, "id e9").Latest == 0, "Latest counts the position of another resource")
	claims := c.next(s, 1)
	c.need(len(claims) == 1 && claims[0].Latest == 3, "latest of %v, want 3", claims)
}

func storeCounts(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, rec("e1", "a"), rec("e2", "b"), rec("e3", "c"), rec("e4", "d"))
	c.must(s.Settle(ctx, c.claim(s, "id e1"), done))
	c.must(s.Settle(ctx, c.claim(s, "id e2"), dead("")))
	c.claim(s, "id e3")
	n, err := s.Counts(ctx)
	c.must(err)
	n.Oldest = min(n.Oldest, 0)
	c.that(n == webhook.Counts{Waiting: 1, Claimed: 1, Dead: 1}, "Counts returned %+v, want 1 waiting, 1 claimed and 1 dead", n)
	remembers, err := s.Remembers(ctx)
	c.must(err)
	c.that(remembers >= 0 && remembers < time.Minute, "a new store remembers %v", remembers)
	purged, err := s.Purge(ctx)
	c.must(err)
	c.that(purged == webhook.Purged{}, "Purge deleted %+v of recent events", purged)
}

func storeOddTexts(c *checker, s webhook.Store) {
	ctx := context.Background()
	r := rec(`it's "odd"; -- 🙂 ?`, "tx?$1")
	c.putNew(s, r)
	claim := c.claim(s, r.Key)
	c.that(claim.EventID == r.EventID && claim.Resource == r.Resource, "the claim has the record %+v, want %+v", claim.Record, r)
	c.must(s.Settle(ctx, claim, dead("a \x00 and \xff")))
	c.that(len(c.letters(s, webhook.DeadLetterQuery{})) == 1, "the dead letter is missing")
}

func (c *checker) putKnown(s webhook.Store, r webhook.Record, key string, state webhook.State) {
	c.t.Helper()
	e := c.put(s, r)
	c.need(e == webhook.Entry{Key: key, State: state}, "Put of %q, which is %q, returned %+v; want state %d", r.Key, key, e, state)
}

func storeFacts(c *checker, s webhook.Store) {
	c.putNew(s, confirmedFact("e1", "f"))
	c.putKnown(s, confirmedFact("e2", "f"), "fact f", webhook.StateWaiting)
	c.putNew(s, confirmedFact("e1", "g")) // an unverified id must be ignored
	c.must(s.Settle(context.Background(), c.claim(s, "fact f"), done))
	c.putKnown(s, confirmedFact("e3", "f"), "fact f", webhook.StateDone)
}

func storeConfirmedAfterSigned(c *checker, s webhook.Store) {
	c.putNew(s, signedFact("e1", "f"))
	c.putKnown(s, confirmedFact("e1", "f"), "id e1", webhook.StateWaiting)
	c.putKnown(s, confirmedFact("forged", "f"), "id e1", webhook.StateWaiting)
	c.putKnown(s, confirmedFact("e1", "later state"), "id e1", webhook.StateWaiting)
	c.must(s.Settle(context.Background(), c.claim(s, "id e1"), done))
	c.putKnown(s, confirmedFact("forged", "f"), "id e1", webhook.StateDone)
	c.that(len(c.next(s, 10)) == 0, "an event was claimed again under another key")
}

func storeSignedAfterConfirmed(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, confirmedFact("forged", "f"))
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateWaiting)
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateWaiting)
	c.putNew(s, signedFact("e2", "f")) // a confirmed event matches only one signed event
	c.putKnown(s, confirmedFact("again", "f"), "fact f", webhook.StateWaiting)
	claims := c.next(s, 10)
	c.need(len(claims) == 1 && claims[0].Key == "fact f", "Next returned %v", claims)
	c.must(s.Settle(ctx, claims[0], done))
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateDone)
	claims = c.next(s, 10)
	c.need(len(claims) == 1 && claims[0].Key == "id e2", "Next returned %v", claims)
	c.must(s.Settle(ctx, claims[0], done))
	c.that(len(c.next(s, 10)) == 0, "the matched signed event was claimed too")
	c.putKnown(s, signedFact("e2", "f"), "id e2", webhook.StateDone)
}

func storeSameID(c *checker, s webhook.Store) {
	c.putNew(s, confirmedFact("e1", "state then"))
	c.putKnown(s, signedFact("e1", "state now"), "fact state then", webhook.StateWaiting)
	other := signedFact("e2", "another")
	c.putNew(s, confirmedFact("e2", "made up"))
	other.Kind = webhook.TransactionRefunded
	c.putNew(s, other) // an attacker guessed the id, but not the event
	elsewhere := signedFact("e2x", "elsewhere")
	elsewhere.Resource = "transaction/elsewhere"
	c.putNew(s, confirmedFact("e2x", "made up too"), elsewhere)
}

func storeConcurrentFacts(c *checker, s webhook.Store) {
	ctx := context.Background()
	for round := range 10 {
		fact := fmt.Sprintf("f%d", round)
		var all sync.WaitGroup
		for i := range 6 {
			r := confirmedFact(fmt.Sprintf("c%d.%d", round, i), fact)
			if i == 5 {
				r = signedFact(fmt.Sprintf("s%d", round), fact)
			}
			all.Go(func() {
				_, err := s.Put(ctx, r)
				c.that(err == nil, "Put returned %v", err)
			})
		}
		all.Wait()
		claims := c.next(s, 10)
		c.need(len(claims) == 1, "%d events of one fact were claimed, want 1", len(claims))
		c.must(s.Settle(ctx, claims[0], done))
		c.need(len(c.next(s, 10)) == 0, "a second event of one fact was claimed")
	}
}

func storeConcurrentClaims(c *checker, s webhook.Store) {
	ctx := context.Background()
	const events, resources, workers = 120, 12, 6
	for i := range events {
		c.putNew(s, rec(fmt.Sprintf("e%03d", i), fmt.Sprintf("tx%d", i%resources)))
	}
	var mu sync.Mutex
	claimed, busy, handled := map[string]int{}, map[string]bool{}, 0
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for idle := 0; idle < 200; {
				claims, err := s.Next(ctx, 4, lease)
				c.that(err == nil, "Next returned %v", err)
				if len(claims) == 0 {
					idle++
				}
				mu.Lock()
				for _, cl := range claims {
					claimed[cl.Key]++
					c.that(!busy[cl.Resource], "two events of %s are claimed at once", cl.Resource)
					busy[cl.Resource] = true
				}
				over := handled == events
				mu.Unlock()
				if over {
					return
				}
				for _, cl := range claims {
					mu.Lock()
					busy[cl.Resource] = false
					handled++
					mu.Unlock()
					err := s.Settle(ctx, cl, done)
					c.that(err == nil, "Settle returned %v", err)
				}
			}
		})
	}
	all.Wait()
	for key, n := range claimed {
		c.that(n == 1, "%s was claimed %d times", key, n)
	}
	c.that(len(claimed) == events, "%d of %d events were claimed", len(claimed), events)
}
