package webhooktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gateway-go/gateway/webhook"
)

// storeConcurrentPuts stores events at once, each of them twice: a store may insert
// events together, but each call gets the result of its own event.
func storeConcurrentPuts(c *checker, s webhook.Store) {
	const events = 32
	of := func(i int) webhook.Record {
		r := rec(fmt.Sprintf("e%02d", i), fmt.Sprintf("tx%02d", i))
		r.Digest = fmt.Sprintf("%d", i)
		return r
	}
	first := of(0)
	first.Resource, first.KeyID, first.Trace = `{tx,"00"}`, `NULL`, `a\"b\\,'c'}`
	first.Body, first.Confirmed, first.Position, first.Late = []byte("{\"\\\x00\xff\"}"), []byte{0xff, 0}, 1<<62, true
	var mu sync.Mutex
	added, conflicts := map[string]int{}, 0
	var all sync.WaitGroup
	for n := range 2 * events {
		all.Go(func() {
			r := of(n / 2)
			if n < 2 {
				r = first
			}
			if n == 3 {
				r.Digest = "another"
			}
			e, err := s.Put(context.Background(), r)
			c.that(err == nil, "Put returned %v", err)
			c.that(e.Key == r.Key && e.State == webhook.StateWaiting && e.Wait == 0, "Put of %s returned %+v", r.Key, e)
			mu.Lock()
			defer mu.Unlock()
			if e.Added {
				added[r.Key]++
			}
			if e.Conflict {
				conflicts++
				c.that(!e.Added && r.Key == "id e01", "Put returned %+v", e)
			}
		})
	}
	all.Wait()
	c.that(conflicts == 1, "%d calls found a different event under their id, instead of 1", conflicts)
	c.that(len(added) == events, "%d of %d events were added", len(added), events)
	for key, n := range added {
		c.that(n == 1, "%s was added %d times", key, n)
	}
	claims := c.next(s, events+1)
	c.that(len(claims) == events, "Next returned %d of %d events", len(claims), events)
	for _, cl := range claims {
		if cl.Key != first.Key {
			continue
		}
		c.that(cl.Resource == first.Resource && cl.KeyID == first.KeyID && cl.Trace == first.Trace && cl.Position == first.Position &&
			cl.Late && bytes.Equal(cl.Body, first.Body) && bytes.Equal(cl.Confirmed, first.Confirmed), "the stored event is %+v", cl.Record)
	}
}

// storeConcurrentEndings ends claims at once: some are completed, some released, and
// some are no longer valid.
func storeConcurrentEndings(c *checker, s webhook.Store) {
	const events = 48
	for i := range events {
		c.putNew(s, rec(fmt.Sprintf("e%02d", i), fmt.Sprintf("tx%02d", i)))
	}
	claims := c.next(s, events)
	c.need(len(claims) == events, "Next returned %d of %d events", len(claims), events)
	var all sync.WaitGroup
	for i, cl := range claims {
		old := *cl
		old.Token = "old" + cl.Token
		end := done
		if i%3 == 0 {
			end = released
		}
		if i%3 == 1 { // another process has the claim with this token
			all.Go(func() {
				err := s.Settle(context.Background(), &old, end)
				c.that(errors.Is(err, webhook.ErrClaimLost), "with an old token it returned %v", err)
			})
		}
		all.Go(func() {
			err := s.Settle(context.Background(), cl, end)
			c.that(err == nil, "with a valid claim it returned %v", err)
		})
	}
	all.Wait()
	for i, cl := range claims {
		again := c.put(s, cl.Record)
		want := webhook.StateDone
		if i%3 == 0 {
			want = webhook.StateWaiting
		}
		c.that(!again.Added && again.State == want, "%s is %v, not %v", cl.Key, again.State, want)
	}
	released := c.next(s, events)
	c.that(len(released) == events/3, "Next returned %d released events instead of %d", len(released), events/3)
	for _, cl := range released {
		c.that(cl.Attempt == 1, "attempt %d after a release", cl.Attempt)
	}
}
