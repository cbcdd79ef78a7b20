package main

import (
	"testing"
	"time"

	"github.com/gateway-go/gateway/internal/exam/examtest"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/mockserver"
)

func TestMain(m *testing.M) { examtest.Main(m, main) }

// The exam kills the process and starts it again; the orders are in a SQLite file. The
// shop sells nothing by voucher.
func TestTheShopPassesTheExam(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			examtest.Pass(t, outside.Config{Path: "/webhooks", Hang: 2 * time.Second, Options: []mockserver.Option{mockserver.WithDialect(dialect)}},
				35, "voucher-paid-late")
		})
	}
}
