package shop_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/shop"
	"github.com/gateway-go/gateway/internal/exam/examtest"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/mockserver"
)

// The shop keeps its orders in memory, so the exam must not restart it: it runs
// already, as with -url. With FULL_SIZE one shop has every scenario, else each of several
// shops has some of them.
func TestTheShopPassesTheExam(t *testing.T) {
	t.Parallel()
	dialects, shops := []mockserver.Dialect{mockserver.Document}, 8
	if os.Getenv("FULL_SIZE") != "" {
		dialects, shops = append(dialects, mockserver.Live), 1
	}
	for _, dialect := range dialects {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			var parts []outside.Config
			for range shops {
				parts = append(parts, serve(t, mockserver.WithDialect(dialect)))
			}
			examtest.PassInParts(t, parts, 25)
		})
	}
}

// serve starts a shop, and returns how to examine it.
func serve(t *testing.T, opts ...mockserver.Option) outside.Config {
	t.Helper()
	const key, secret = "sk_test_exam", "whsec_exam"
	port, release, err := outside.ReservePort(t.Context())
	require.NoError(t, err)
	t.Cleanup(release)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	client, err := gateway.New("http://"+addr, gateway.BearerToken(key), gateway.WithBackoff(10*time.Millisecond, 100*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	s := shop.New(client)
	receiver, err := s.Receiver(gateway.NewSecret(secret))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", receiver)
	mux.Handle("/exam/", s.Exam())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return outside.Config{
		URL: server.URL, Addr: addr, Key: key, Secret: secret, Path: "/webhooks", Options: opts, Grace: time.Second, Hang: 100 * time.Millisecond,
	}
}
