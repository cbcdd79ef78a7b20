package mockserver_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// fullSize reports whether the environment asks for the full size of the long
// tests, as .ci/run does in its part chaos.
func fullSize() bool { return os.Getenv("FULL_SIZE") != "" }

// TestChaos has sixteen workers of a merchant create charges, and payouts,
// through a network and a gateway that fail in every possible way. The results
// of the calls must agree with the gateway's books, and no reference may exist
// twice. Then each unknown outcome is settled as documented.
//
// It runs in a synctest bubble, since the waits add up to hours.
func TestChaos(t *testing.T) {
	t.Parallel()
	creates, others := 1_500, 1_000
	if fullSize() {
		creates, others = 100_000, 10_000
	}
	for _, run := range []struct {
		name    string
		dialect mockserver.Dialect
		service service
		creates int
	}{
		{"charges", mockserver.Document, charges(), creates},
		// The live gateway's rejection does not identify the first charge, so
		// the client searches the list.
		{"live charges", mockserver.Live, charges(), others},
		{"payouts", mockserver.Document, payouts(), others},
		{"live payouts", mockserver.Live, payouts(), others}, // returned the first resource
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t, run.service, run.dialect)
				s.makeCalls(t, run.creates)
				s.clear(t)
				s.compareBooks(t)
				s.settle(t)
			})
		})
	}
}

const workers = 16

// randomFaults is the set of faults for the creates of a service, and for the reads
// that search for a created resource after a lost response.
func randomFaults(service string) []mockserver.Fault {
	creates := func(p float64, f mockserver.Fault) mockserver.Fault { return f.On(service + ".create").Probability(p) }
	others := func(p float64, f mockserver.Fault) mockserver.Fault { return f.On(service + ".*").Probability(p) }
	return []mockserver.Fault{
		creates(0.040, mockserver.LoseResponse()),
		creates(0.040, mockserver.ResetBefore()),
		creates(0.020, mockserver.Status(500)),
		creates(0.020, mockserver.Status(500).CodedBody().Applied()),
		creates(0.020, mockserver.Status(503).RetryAfter(2*time.Second)),
		creates(0.050, mockserver.Status(429).RetryAfter(time.Second)),
		creates(0.005, mockserver.Status(429).RetryAfter(time.Hour)), // too long: the call returns an error
		creates(0.005, mockserver.Status(403)),
		creates(0.020, mockserver.HTMLPage()),
		creates(0.010, mockserver.HTMLPage().Applied()),
		creates(0.030, mockserver.Truncate()),
		creates(0.010, mockserver.EmptyBody()),
		creates(0.010, mockserver.BadJSON()),
		creates(0.005, mockserver.HangUntilTimeout()),
		creates(0.005, mockserver.HangUntilTimeout().Applied()),
		creates(0.020, mockserver.Latency(29*time.Second)),
		creates(0.005, mockserver.Latency(31*time.Second)), // the attempt times out first
		creates(0.010, mockserver.UnknownEnum()),
		creates(0.010, mockserver.ExtraField()),
		others(0.050, mockserver.Status(502)),
		others(0.050, mockserver.Truncate()),
		others(0.020, mockserver.StaleRead()),
	}
}

// service is a service whose creates have a reference, which makes them safe to
// repeat.
type service struct {
	name   string // "transactions"
	create func(context.Context, *gateway.Client, job, ...gateway.RequestOption) (entry, error)
	all    func(context.Context, *gateway.Client) iter.Seq2[entry, error]
}

// entry is the gateway's entry for one reference, in cents.
type entry struct {
	id, reference string
	amount        int64
	cost          int64 // amount deducted from the balance immediately
}

func charges() service {
	return service{
		name: "transactions",
		create: func(ctx context.Context, c *gateway.Client, j job, opts ...gateway.RequestOption) (entry, error) {
			params := order(j.reference)
			params.Amount = j.amount
			t, err := c.Transactions.Create(ctx, params, opts...)
			if err != nil {
				return entry{}, err
			}
			return entry{t.ID, t.ExternalRef, t.Amount, 0}, nil
		},
		all: func(ctx context.Context, c *gateway.Client) iter.Seq2[entry, error] {
			return entries(c.Transactions.All(ctx, gateway.TransactionListParams{Limit: 100}),
				func(t *gateway.Transaction) entry { return entry{t.ID, t.ExternalRef, t.Amount, 0} })
		},
	}
}

func payouts() service {
	of := func(t *gateway.Transfer) entry { return entry{t.ID, t.ExternalRef, t.Amount, t.Amount} }
	return service{
		name: "transfers",
		create: func(ctx context.Context, c *gateway.Client, j job, opts ...gateway.RequestOption) (entry, error) {
			params := payout(j.reference)
			params.Amount = j.amount
			t, err := c.Transfers.Create(ctx, params, opts...)
			if err != nil {
				return entry{}, err
			}
			return of(t), nil
		},
		all: func(ctx context.Context, c *gateway.Client) iter.Seq2[entry, error] {
			return entries(c.Transfers.All(ctx, gateway.TransferListParams{Limit: 100}), of)
		},
	}
}

func entries[T any](items iter.Seq2[*T, error], of func(*T) entry) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for item, err := range items {
			var e entry
			if err == nil {
				e = of(item)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// job is one call of Create. Some orders have two.
type job struct {
	reference string // "": the client generates one
	amount    int64
}

// jobs mixes typical calls: most orders are created once, some twice
// concurrently (a double click), some with another order's reference (a
// mistake), and some without a reference.
func jobs(n int) []job {
	list := make([]job, n)
	for i := range list {
		list[i] = job{reference: fmt.Sprintf("order-%06d", i), amount: int64(1000 + i)}
		switch i % 50 {
		case 10, 30:
			list[i] = list[i-1]
		case 20:
			list[i].reference = list[i-1].reference
		case 40, 41:
			list[i].reference = ""
		}
	}
	return list
}

// verdict is the outcome of a call that its caller sees.
type verdict string

const (
	toldCreated   verdict = "created"
	toldRecovered verdict = "recovered" // created, and recovered after the response was lost
	toldDuplicate verdict = "duplicate" // the reference had been used before
	toldRefused   verdict = "refused"   // nothing was created
	toldUnknown   verdict = "unknown"   // it may have been created; find it by its reference
)

// outcome is the result of a call.
type outcome struct {
	job

	verdict  verdict
	id       string // of the created resource, if the call returned it
	sent     string // the reference that was sent
	attempts int
	err      error
}

type storm struct {
	service  service
	gw       *mockserver.Server
	client   *gateway.Client
	began    time.Time
	outcomes []outcome
	books    map[string]entry // by reference
}

func newStorm(t *testing.T, s service, dialect mockserver.Dialect) *storm {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithSeed(7), mockserver.WithDialect(dialect))
	require.NoError(t, gw.Faults.Add(randomFaults(s.name)...))
	return &storm{service: s, gw: gw, client: gw.Client(), began: time.Now()}
}

// makeCalls makes the calls and records their outcomes.
func (s *storm) makeCalls(t *testing.T, calls int) {
	t.Helper()
	todo := jobs(calls)
	s.outcomes = make([]outcome, len(todo))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
				s.outcomes[i] = s.create(t, todo[i])
			}
		})
	}
	wg.Wait()
}

func (s *storm) create(t *testing.T, j job) outcome {
	t.Helper()
	var resp gateway.Response
	made, err := s.service.create(t.Context(), s.client, j, gateway.ResponseInto(&resp))
	out := outcome{job: j, sent: resp.Reference, attempts: resp.Attempts, err: err, id: made.id}
	var lost *gateway.OutcomeError
	var failed *gateway.Error
	switch {
	case errors.As(err, &lost):
		out.verdict, out.sent, out.id = toldUnknown, lost.Reference, lost.ResourceID
	case errors.Is(err, gateway.ErrDuplicate), resp.Existing && !resp.Recovered:
		out.verdict = toldDuplicate
	case errors.As(err, &failed):
		out.verdict, out.sent = toldRefused, failed.Reference
	case err == nil && resp.Recovered:
		out.verdict = toldRecovered
	case err == nil:
		out.verdict = toldCreated
	}
	if err == nil {
		assert.Equal(t, j.amount, made.amount, "%s: the response is another order's", j.reference)
		assert.Equal(t, out.sent, made.reference)
	}
	return out
}
