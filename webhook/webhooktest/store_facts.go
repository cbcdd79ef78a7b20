package webhooktest

import (
	"context"
	"fmt"
	"sync"

	"github.com/gateway-go/gateway/webhook"
)

func (c *checker) putKnown(s webhook.Store, r webhook.Record, key string, state webhook.State) {
	c.t.Helper()
	e := c.put(s, r)
	c.need(e == webhook.Entry{Key: key, State: state}, "Put of %q, which is %q, returned %+v; want state %d", r.Key, key, e, state)
}

func storeFacts(c *checker, s webhook.Store) {
	c.putNew(s, confirmedFact("e1", "f"))
	c.putKnown(s, confirmedFact("e2", "f"), "fact f", webhook.StateWaiting)
	c.putNew(s, confirmedFact("e1", "g")) // an id that nobody proved means nothing
	c.must(s.Complete(context.Background(), c.claim(s, "fact f")))
	c.putKnown(s, confirmedFact("e3", "f"), "fact f", webhook.StateDone)
}

func storeConfirmedAfterSigned(c *checker, s webhook.Store) {
	c.putNew(s, signedFact("e1", "f"))
	c.putKnown(s, confirmedFact("e1", "f"), "id e1", webhook.StateWaiting)
	c.putKnown(s, confirmedFact("forged", "f"), "id e1", webhook.StateWaiting)
	c.putKnown(s, confirmedFact("e1", "later state"), "id e1", webhook.StateWaiting)
	c.must(s.Complete(context.Background(), c.claim(s, "id e1")))
	c.putKnown(s, confirmedFact("forged", "f"), "id e1", webhook.StateDone)
	c.that(len(c.next(s, 10)) == 0, "an event came in twice")
}

func storeSignedAfterConfirmed(c *checker, s webhook.Store) {
	ctx := context.Background()
	c.putNew(s, confirmedFact("forged", "f"))
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateWaiting)
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateWaiting)
	c.putNew(s, signedFact("e2", "f")) // one confirmed event stands for one signed event
	c.putKnown(s, confirmedFact("again", "f"), "fact f", webhook.StateWaiting)
	claims := c.next(s, 10)
	c.need(len(claims) == 1 && claims[0].Key == "fact f", "Next returned %v", claims)
	c.must(s.Complete(ctx, claims[0]))
	c.putKnown(s, signedFact("e1", "f"), "fact f", webhook.StateDone)
	claims = c.next(s, 10)
	c.need(len(claims) == 1 && claims[0].Key == "id e2", "Next returned %v", claims)
	c.must(s.Complete(ctx, claims[0]))
	c.that(len(c.next(s, 10)) == 0, "the matched event was to be handled too")
	c.putKnown(s, signedFact("e2", "f"), "id e2", webhook.StateDone)
}

func storeSameID(c *checker, s webhook.Store) {
	c.putNew(s, confirmedFact("e1", "state then"))
	c.putKnown(s, signedFact("e1", "state now"), "fact state then", webhook.StateWaiting)
	other := signedFact("e2", "another")
	c.putNew(s, confirmedFact("e2", "made up"))
	other.Kind = webhook.TransactionRefunded
	c.putNew(s, other) // somebody guessed the id, not the event
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
		c.need(len(claims) == 1, "one fact gave %d events at a time", len(claims))
		c.must(s.Complete(ctx, claims[0]))
		c.need(len(c.next(s, 10)) == 0, "one fact gave two events")
	}
}

func storeConcurrentClaims(c *checker, s webhook.Store) {
	ctx := context.Background()
	const events, resources, workers = 120, 12, 6
	for i := range events {
		c.putNew(s, rec(fmt.Sprintf("e%03d", i), fmt.Sprintf("tx%d", i%resources)))
	}
	var mu sync.Mutex
	claimed, busy, done := map[string]int{}, map[string]bool{}, 0
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
				over := done == events
				mu.Unlock()
				if over {
					return
				}
				for _, cl := range claims {
					mu.Lock()
					busy[cl.Resource] = false
					done++
					mu.Unlock()
					err := s.Complete(ctx, cl)
					c.that(err == nil, "Complete returned %v", err)
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
