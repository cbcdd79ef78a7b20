package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

func handleEverything(s *shop) { webhook.OnOther(s.rx, inbox.HandleTx(s.in, s.writes)) }

func TestAnEventIsHandledOnceWithItsJob(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	for range 3 {
		assert.Equal(t, http.StatusOK, s.deliver(webhook.TransactionPaid, "e1", "tx").Status)
	}
	s.state("e1", rivertype.JobStateCompleted)
	assert.Equal(t, []string{"e1"}, s.effects())
	assert.Equal(t, http.StatusOK, s.deliver(webhook.TransactionPaid, "e1", "tx").Status)
	assert.Equal(t, uint64(3), s.rx.Stats()[webhook.OutcomeDuplicate])
	jobs, err := s.client.JobList(t.Context(), river.NewJobListParams().Kinds("gateway_webhook"))
	require.NoError(t, err)
	assert.Len(t, jobs.Jobs, 1)
	assert.NotContains(t, string(jobs.Jobs[0].EncodedArgs), "amount", "a job identifies its event and has no content")
}

func TestAHandlerThatFailsIsRetriedByRiver(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	failures := 3
	s := open(t, newDatabase(t), func(s *shop) {
		webhook.OnOther(s.rx, inbox.HandleTx(s.in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
			require.NoError(t, s.writes(ctx, tx, e))
			mu.Lock()
			defer mu.Unlock()
			if failures--; failures >= 0 {
				return fmt.Errorf("no order yet, %d more", failures)
			}
			return nil
		}))
	}, nil)
	s.deliver(webhook.TransactionPaid, "e1", "tx")
	s.state("e1", rivertype.JobStateCompleted)
	assert.Equal(t, []string{"e1"}, s.effects(), "a failed attempt must have no effect")
	job := s.job("e1")
	require.Len(t, job.Errors, 3)
	assert.Equal(t, "no order yet, 2 more", job.Errors[0].Error)
	assert.Equal(t, uint64(3), s.rx.Stats()[webhook.OutcomeFailed])
}

func TestADeadLetterIsADiscardedJob(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	broken := true
	s := open(t, newDatabase(t), func(s *shop) {
		webhook.OnOther(s.rx, inbox.HandleTx(s.in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return webhook.Permanent(errors.New("no such order"))
			}
			return s.writes(ctx, tx, e)
		}))
	}, nil)
	for _, id := range []string{"by receiver", "by River"} {
		s.deliver(webhook.TransactionPaid, id, id)
		s.state(id, rivertype.JobStateDiscarded)
		assert.Equal(t, "dead letter: no such order", s.job(id).Errors[0].Error)
		assert.Equal(t, http.StatusOK, s.deliver(webhook.TransactionPaid, id, id).Status, "a redelivery changes nothing")
	}
	dead, err := s.rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, dead, 2)

	// Still broken: it becomes a dead letter again.
	_, err = s.rx.Requeue(t.Context(), "id by receiver")
	require.NoError(t, err)
	s.eventually("a second error", func() bool { return len(s.job("by receiver").Errors) == 2 })
	s.state("by receiver", rivertype.JobStateDiscarded)

	mu.Lock()
	broken = false
	mu.Unlock()
	n, err := s.rx.Requeue(t.Context(), "id by receiver")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	_, err = s.client.JobRetry(t.Context(), s.job("by River").ID)
	require.NoError(t, err)
	s.state("by receiver", rivertype.JobStateCompleted)
	s.state("by River", rivertype.JobStateCompleted)
	assert.ElementsMatch(t, []string{"by receiver", "by River"}, s.effects())
}

func TestAnEventWithAKnownIDAndOtherContentIsADiscardedJob(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	s.deliver(webhook.TransactionPaid, "e1", "tx1")
	s.state("e1", rivertype.JobStateCompleted)
	assert.Equal(t, http.StatusOK, s.deliver(webhook.TransactionPaid, "e1", "tx2").Status)
	s.eventually("a discarded job", func() bool {
		list, err := s.client.JobList(t.Context(), river.NewJobListParams().States(rivertype.JobStateDiscarded))
		require.NoError(t, err)
		return len(list.Jobs) == 1
	})
	assert.Equal(t, []string{"e1"}, s.effects())
	n, err := s.rx.Counts(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n.Dead)
}

func TestAnEventWithoutAHandlerWaitsForAProcessThatHasOne(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	older := open(t, url, func(s *shop) {
		webhook.OnTransaction(s.rx, webhook.TransactionPaid, inbox.HandleTx(s.in,
			func(ctx context.Context, tx pgx.Tx, e *webhook.TransactionEvent) error {
				return s.writes(ctx, tx, e.Event)
			}))
	}, nil)
	assert.Equal(t, http.StatusOK, older.deliver(webhook.TransactionRefunded, "e1", "tx").Status)
	older.eventually("the event is reported", func() bool {
		kinds, err := older.rx.Unhandled(t.Context())
		require.NoError(t, err)
		return len(kinds) == 1 && kinds[0].Kind == webhook.TransactionRefunded && kinds[0].Events == 1
	})
	older.state("e1", rivertype.JobStateScheduled)
	older.deliver(webhook.TransactionPaid, "e2", "tx")
	older.state("e2", rivertype.JobStateCompleted)
	older.stop() // it would keep snoozing the event, longer each time
	newer := open(t, url, handleEverything, nil)
	newer.eventually("handled", func() bool { return len(newer.effects()) == 2 })
	assert.Equal(t, []string{"e2", "e1"}, newer.effects())
}

func TestTheEventsOfAResourceStayInOrder(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	paused, unsubscribe := s.client.Subscribe(river.EventKindQueuePaused)
	defer unsubscribe()
	require.NoError(t, s.client.QueuePause(t.Context(), s.in.QueueOf(s.rx.Account()), nil))
	<-paused
	const resources, each = 10, 12
	for i := range each {
		for r := range resources {
			s.deliver(webhook.TransactionPaid, fmt.Sprintf("%d.%03d", r, i), fmt.Sprintf("tx%d", r))
		}
	}
	assert.Empty(t, s.effects(), "while the queue is paused, events are stored and not handled")
	require.NoError(t, s.client.QueueResume(t.Context(), s.in.QueueOf(s.rx.Account()), nil))
	s.eventually("all are handled", func() bool { return len(s.effects()) == resources*each })
	last := map[byte]string{}
	for _, id := range s.effects() {
		assert.Less(t, last[id[0]], id)
		last[id[0]] = id
	}
}

func TestAnUnsignedEventIsConfirmedByTheAPI(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithStart(time.Now()))
	client := gw.Client()
	s := open(t, newDatabase(t), handleEverything, func(c *webhook.Config) {
		c.API, c.Trust = client, webhook.SignatureOrReadBack
	})
	require.NoError(t, gw.Clock.Advance(time.Minute)) // unsigned events from before the table was created are rejected
	tx, err := client.Transactions.Create(t.Context(), gateway.TransactionParams{
		Amount: 1990, Method: gateway.Pix, Buyer: gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 1990}},
	})
	require.NoError(t, err)
	unsigned := func(id string) webhook.Response {
		return s.rx.Receive(t.Context(), webhook.Delivery{
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   []byte(`{"id":"` + id + `","event":"transaction","data":{"id":"` + tx.ID + `","event_type":"transaction.paid"}}`),
		})
	}
	assert.NotEqual(t, http.StatusOK, unsigned("forged").Status, "it is not paid")
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	for i := range 3 {
		assert.Equal(t, http.StatusOK, unsigned(fmt.Sprint("notified ", i)).Status)
	}
	s.eventually("handled", func() bool { return len(s.effects()) > 0 })
	body := []byte(`{"id":"signed","event":"transaction","data":{"id":"` + tx.ID + `","event_type":"transaction.paid"}}`)
	signed := s.rx.Receive(t.Context(), webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body})
	assert.Equal(t, http.StatusOK, signed.Status)
	s.eventually("idle", func() bool {
		n, err := s.rx.Counts(t.Context())
		require.NoError(t, err)
		return n.Waiting+n.Claimed == 0
	})
	assert.Len(t, s.effects(), 1, "events that report the same fact have one effect")
}

func TestEventsOfPlainSQLStoreAreAdopted(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	for _, id := range []string{"e1", "e2"} { // as a process without River stores them
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id}.Body()
		_, err := s.store().Store.Put(t.Context(), webhook.Record{
			Key: "id " + id, EventID: id, Kind: webhook.TransactionPaid, Resource: "transaction/" + id, Signed: true, Body: body,
		})
		require.NoError(t, err)
	}
	n, err := s.in.Adopt(t.Context(), s.rx.Account())
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	s.eventually("both are handled", func() bool { return len(s.effects()) == 2 })
	n, err = s.in.Adopt(t.Context(), s.rx.Account())
	require.NoError(t, err)
	assert.Zero(t, n)
}

// A job that a person cancelled does not affect its event.
func TestAnEventWhoseJobWasCancelledIsAdopted(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	paused, unsubscribe := s.client.Subscribe(river.EventKindQueuePaused)
	defer unsubscribe()
	require.NoError(t, s.client.QueuePause(t.Context(), s.in.QueueOf(s.rx.Account()), nil))
	<-paused
	s.deliver(webhook.TransactionPaid, "e1", "tx")
	_, err := s.client.JobCancel(t.Context(), s.job("e1").ID)
	require.NoError(t, err)
	require.NoError(t, s.client.QueueResume(t.Context(), s.in.QueueOf(s.rx.Account()), nil))
	n, err := s.in.Adopt(t.Context(), s.rx.Account())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	s.state("e1", rivertype.JobStateCompleted)
	assert.Equal(t, []string{"e1"}, s.effects())
}

func TestAReceiverWithItsOwnWorkersIsRejected(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	_, err := s.in.Next(t.Context(), 1, time.Minute)
	require.ErrorContains(t, err, "Workers: -1")
	_, _, err = s.in.Claim(t.Context(), "id e1", time.Minute)
	require.ErrorContains(t, err, "Workers: -1")
}

func TestInvalidConfigurations(t *testing.T) {
	t.Parallel()
	s := open(t, newDatabase(t), handleEverything, nil)
	for want, config := range map[string]inbox.Config{
		"Pool is required":  {},
		"Schema":            {Pool: s.pool, Schema: `x"; DROP`},
		"SweepInterval and": {Pool: s.pool, SweepInterval: -1},
	} {
		_, err := inbox.New(config)
		require.ErrorContains(t, err, want)
	}
	config := &river.Config{}
	require.NoError(t, s.in.Configure(config, s.rx))
	require.ErrorContains(t, s.in.Configure(config, s.rx), "inbox: ", "the workers are already registered")
	_, err := river.NewClient(riverpgxv5.New(s.pool), config)
	require.NoError(t, err)
	assert.Equal(t, 16, config.Queues["gateway_webhooks_shop"].MaxWorkers)
}
