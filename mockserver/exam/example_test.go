package exam_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// merchant stands for your program.
type merchant struct {
	orders map[string]*gateway.Transaction
}

func (m *merchant) Webhooks() http.Handler { return http.NotFoundHandler() }

func (m *merchant) Place(context.Context, exam.Order) error   { return errors.ErrUnsupported }
func (m *merchant) Refund(context.Context, exam.Refund) error { return errors.ErrUnsupported }
func (m *merchant) Jobs(context.Context, time.Time) error     { return nil }
func (m *merchant) Close() error                              { return nil }

func (m *merchant) Report(_ context.Context, id string) (exam.Report, error) {
	if m.orders[id] == nil {
		return exam.Report{}, exam.ErrUnknown
	}
	return exam.Report{ID: id, Status: exam.StatusPending}, nil
}

// openMerchant opens your program with the folder of its data.
func openMerchant(string, *gateway.Client, gateway.Secret) (*merchant, error) {
	return &merchant{}, nil
}

// Explore plays every life of an order, with one thing that goes wrong in each schedule.
func ExampleExplore() {
	var t *testing.T // of your test
	exam.Explore(t, func(p *exam.Process) (http.Handler, error) {
		m, err := openMerchant(p.Dir(), p.Client(), p.Secret())
		if err != nil {
			return nil, err
		}
		p.OnExit(m.Close)
		mux := http.NewServeMux()
		mux.Handle("POST /webhooks", m.Webhooks())
		mux.Handle("/exam/", exam.Hooks{Place: m.Place, Report: m.Report, Refund: m.Refund, Tick: m.Jobs})
		return mux, nil
	})
}

// The same hooks serve the command mockgateway exam, and only during an exam.
func ExampleHooks() {
	m, err := openMerchant(os.Getenv("EXAM_DATA_DIR"), nil, gateway.NewSecret(os.Getenv("GATEWAY_WEBHOOK_SECRET")))
	if err != nil {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", m.Webhooks())
	if os.Getenv("EXAM") == "1" {
		mux.Handle("/exam/", exam.Hooks{Place: m.Place, Report: m.Report, Refund: m.Refund, Tick: m.Jobs})
	}
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		return
	}
}
