package bench_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls are the operations of every contestant. create and get return the id of the
// resource, and list returns the number of items that have an id.
type calls struct {
	create func(context.Context) (string, error)
	get    func(context.Context) (string, error)
	list   func(context.Context) (int, error)
}

type contestant struct {
	name    string
	id      string // of the resource
	backend func() *backend
	open    func(network) (calls, error)
}

const transactionID = "0198c5a0-3c5e-7f2a-8d11-aaaa00000000"

func contestants() []contestant {
	return []contestant{
		{"gateway", transactionID, gatewayBackend, openGateway},
		{"floorA", transactionID, gatewayBackend, floorA},
		{"floorB", transactionID, gatewayBackend, floorB},
		{"stripe", stripeID, stripeBackend, openStripe},
		{"paddle", paddleID, paddleBackend, openPaddle},
		{"github", githubID, githubBackend, openGitHub},
		{"hcloud", hcloudID, hcloudBackend, openHCloud},
		{"openai", openaiID, openaiBackend, openOpenAI},
		{"paypal", paypalID, paypalBackend, openPayPal},
	}
}

// Every contestant does all of the work, on bodies of similar size.
func TestContestants(t *testing.T) {
	t.Parallel()
	for _, c := range contestants() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.backend()
			b.prepare()
			transport := &recorder{memory: memory{b}}
			calls, err := c.open(network{transport, "https://api.example.com"})
			require.NoError(t, err)

			id, err := calls.create(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.id, id)
			assert.InDelta(t, 1000, transport.sent, 50, "bytes of the request")
			assert.InDelta(t, 1700, len(b.one), 50, "bytes of the response")

			id, err = calls.get(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.id, id)

			n, err := calls.list(t.Context())
			require.NoError(t, err)
			assert.Equal(t, listSize, n)
			assert.InDelta(t, 1700*pageSize, len(b.pages[1]), 100*pageSize, "bytes of a page")
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	each(b, func(ctx context.Context, calls calls) error {
		_, err := calls.create(ctx)
		return err
	})
}

func BenchmarkGet(b *testing.B) {
	each(b, func(ctx context.Context, calls calls) error {
		_, err := calls.get(ctx)
		return err
	})
}

// BenchmarkList reads 10,000 items in pages of 100.
func BenchmarkList(b *testing.B) {
	each(b, func(ctx context.Context, calls calls) error {
		_, err := calls.list(ctx)
		return err
	})
}

// each benchmarks one call of every contestant, in memory and over loopback. The
// order is random: the first to run in a process pays for its first pages of
// memory.
func each(b *testing.B, call func(context.Context, calls) error) {
	b.Helper()
	networks := map[string]func(*backend) network{
		"memory":   inMemory,
		"loopback": func(back *backend) network { return loopback(b, back) },
	}
	for _, where := range []string{"memory", "loopback"} {
		all := contestants()
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, c := range all {
			b.Run(where+"/"+c.name, func(b *testing.B) {
				back := c.backend()
				back.prepare()
				calls, err := c.open(networks[where](back))
				require.NoError(b, err)
				require.NoError(b, call(b.Context(), calls))
				b.ReportAllocs()
				for b.Loop() {
					if err := call(b.Context(), calls); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
