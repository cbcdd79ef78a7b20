package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// BenchmarkMockCreate creates transactions with the client of a mock in this process.
func BenchmarkMockCreate(b *testing.B) {
	mock := mockserver.Run(b, largeMemory())
	client := mock.Client()
	params := chargeParams()
	params.NotifyURL = "" // without webhooks
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		params.ExternalRef = "order-" + strconv.Itoa(n)
		if _, err := client.Transactions.Create(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMockNew starts a mock, makes one call and closes it.
func BenchmarkMockNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mock, err := mockserver.New()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := mock.Client().Transactions.Create(b.Context(), chargeParams()); err != nil {
			b.Fatal(err)
		}
		if err := mock.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMockPage reads pages of 100 from small and large accounts: the first one, one
// from the middle, and a filtered one. It also reports the account's memory per
// transaction.
func BenchmarkMockPage(b *testing.B) {
	for _, rows := range []int{1_000, largeAccount(b)} {
		b.Run("rows="+strconv.Itoa(rows), func(b *testing.B) {
			before := heap()
			mock := mockserver.Run(b, largeMemory())
			fill(b, mock, rows)
			perRow := float64(heap()-before) / float64(rows)
			middle := cursorAt(b, mock.Client(), rows/2)
			for _, page := range [][2]string{
				{"first", "limit=100"},
				{"middle", "limit=100&cursor=" + middle},
				{"filtered", "limit=100&status=pending&paymentMethods=pix"},
			} {
				b.Run(page[0], func(b *testing.B) {
					var body bytes.Buffer // reused: otherwise it would be more garbage than the page itself
					b.ReportAllocs()
					for b.Loop() {
						body.Reset()
						status := serve(&body, mock, http.MethodGet, "/v2/transactions?"+page[1], "")
						if status != http.StatusOK || bytes.Count(body.Bytes(), []byte(`"external_ref"`)) != 100 {
							b.Fatalf("%d: not a full page: %.200s", status, body.String())
						}
					}
					b.ReportMetric(perRow, "B/row")
				})
			}
		})
	}
}

// largeAccount returns the size of the large account: a million transactions, or
// BENCH_ROWS, for a quick test of the benchmarks.
func largeAccount(b *testing.B) int {
	b.Helper()
	if text := os.Getenv("BENCH_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		return n
	}
	return 1_000_000
}

func largeMemory() mockserver.Option { return mockserver.WithMemoryLimit(8 << 30) }

// fill creates transactions on every core, directly through the handler.
func fill(b *testing.B, mock *mockserver.Server, rows int) {
	b.Helper()
	const template = `{"external_ref":"order-%08d","amount":%d,"method":"pix",` +
		`"buyer":{"name":"Maria Oliveira","email":"buyer%d@example.com"},"products":[{"name":"Café","price":15470}]}`
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			var response bytes.Buffer
			for n := w; n < rows; n += workers {
				response.Reset()
				body := fmt.Sprintf(template, n, 100+n%1000, n%50)
				if status := serve(&response, mock, http.MethodPost, "/v2/transactions", body); status != http.StatusCreated {
					b.Errorf("row %d: %s", n, response.String())
					return
				}
			}
		})
	}
	wg.Wait()
}

// serve writes the body of the response to out.
func serve(out *bytes.Buffer, mock *mockserver.Server, method, target, body string) (status int) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request := httptest.NewRequest(method, target, reader)
	request.Header.Set("Authorization", "Bearer "+mock.Key())
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := &httptest.ResponseRecorder{Code: http.StatusOK, Body: out}
	mock.Handler().ServeHTTP(recorder, request)
	return recorder.Code
}

// cursorAt returns the cursor after about n items.
func cursorAt(b *testing.B, client *gateway.Client, n int) string {
	b.Helper()
	seen := 0
	for page, err := range client.Transactions.Pages(b.Context(), gateway.TransactionListParams{Limit: 100}) {
		require.NoError(b, err)
		if seen += len(page.Items); seen >= n {
			return page.NextCursor
		}
	}
	b.Fatal("the list is too short")
	return ""
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
