package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/exam/examtest"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/exam"
)

// The program under examination is the test binary, so the service itself has no hooks.
func TestMain(m *testing.M) {
	examtest.Main(m, func() {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		waits := merchant.Config{ // the gateway's clock jumps, this process's doesn't
			SendTimeout: time.Second, SettleAfter: 2 * time.Second, CallbackTimeout: time.Second, Lease: time.Second, PollInterval: 100 * time.Millisecond,
		}
		if err := run(context.Background(), log, waits, (*shop).examined); err != nil {
			log.Error("the shop ended", slog.Any("error", err)) //nolint:sloglint // it has no context
			os.Exit(1)
		}
	})
}

// The exam kills the process and starts it again; the orders are in PostgreSQL. The shop
// sells nothing by voucher.
func TestTheShopPassesTheExam(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			_, address := newDatabase(t)
			examtest.Pass(t, outside.Config{
				Path: "/webhooks/gateway", Hang: 2 * time.Second, Options: []mockserver.Option{mockserver.WithDialect(dialect)},
				Env: map[string]string{"DATABASE_URL": address, "LISTEN": "127.0.0.1:{port}", "ADMIN_TOKEN": adminToken},
			}, 35, "voucher-paid-late")
		})
	}
}

// examined serves the shop with the hooks of docs/exam.md, which call what the routes call.
func (s *shop) examined() http.Handler {
	// The database counts the shipments that leave, so that a second one would be seen.
	if _, err := s.db.ExecContext(context.Background(), `
		CREATE TABLE IF NOT EXISTS exam_parcels (id text);
		CREATE OR REPLACE FUNCTION exam_parcel() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO exam_parcels VALUES (new.id); RETURN new; END $$;
		CREATE OR REPLACE TRIGGER exam_parcel AFTER UPDATE OF sent_at ON shipments FOR EACH ROW EXECUTE FUNCTION exam_parcel()`); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.handler())
	mux.Handle("/exam/", exam.Hooks{
		Place: func(ctx context.Context, o exam.Order) error {
			err := s.place(ctx, o.ID, "mug", 1, gateway.TransactionParams{Amount: o.Amount, Currency: o.Currency, Method: o.Method, Token: o.CardToken, Buyer: o.Buyer})
			if err != nil {
				return told("", err)
			}
			v, err := s.getOrder(ctx, o.ID, none{})
			if err != nil {
				return err
			}
			return told(v.(record).State, nil)
		},
		Report: func(ctx context.Context, id string) (exam.Report, error) {
			o, err := s.Order(ctx, id)
			if err != nil || len(o.Charges) == 0 {
				return exam.Report{}, errors.Join(err, exam.ErrUnknown)
			}
			if err := s.sendAll(ctx); err != nil {
				return exam.Report{}, err
			}
			shipped, err := s.count(ctx, `SELECT count(*) FROM exam_parcels WHERE id = $1`, id)
			return exam.Report{ID: id, Status: status(o), Paid: o.Paid, Refunded: o.Refunded, ChargedBack: o.Disputed, Shipped: shipped}, err
		},
		Refund: func(ctx context.Context, r exam.Refund) error {
			f, err := s.Refund(ctx, merchant.RefundParams{ID: r.ID, Order: r.OrderID, Amount: r.Amount})
			if err != nil {
				return told("", err)
			}
			return told(f.State, nil)
		},
		Subscribe: func(ctx context.Context, m exam.Subscription) error {
			sub, err := s.join(ctx, m.ID, gateway.CustomerParams{Name: m.Buyer.Name, Email: m.Buyer.Email}, m.Amount, m.CardToken)
			if err != nil {
				return told("", err)
			}
			return told(sub.State, nil)
		},
		ReportSubscription: func(ctx context.Context, id string) (exam.Agreement, error) {
			m, err := s.Subscription(ctx, id)
			if err != nil {
				return exam.Agreement{}, told("", err)
			}
			periods, err := s.count(ctx, `SELECT count(*) FROM invoices WHERE member_id = $1`, id)
			return exam.Agreement{ID: id, Status: exam.Status(m.State), Periods: periods, Paid: m.Order.Paid}, err
		},
		PayOut: func(ctx context.Context, p exam.Payout) error {
			out, err := s.payBill(ctx, p.ID, gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: p.PixKey, Amount: p.Amount})
			if err != nil {
				return told("", err)
			}
			return told(out.State, nil)
		},
		ReportPayout: func(ctx context.Context, id string) (exam.Agreement, error) {
			paid, err := s.count(ctx, `SELECT COALESCE(SUM(amount), 0) FROM payouts WHERE id = $1 AND state = 'paid'`, id)
			a := exam.Agreement{ID: id, Status: exam.StatusPending, Paid: paid}
			if paid > 0 {
				a.Status = exam.StatusPaid
			}
			return a, err
		},
		Tick: func(ctx context.Context, _ time.Time) error {
			_ = s.Reconcile(ctx) // what can't be read is compared at the next tick
			return s.Idle(ctx)
		},
	})
	return mux
}

// sendAll is the warehouse.
func (s *shop) sendAll(ctx context.Context) error {
	tasks, err := s.getShipments(ctx, "", none{})
	if err != nil {
		return err
	}
	for _, is := range tasks.([]shipment) {
		if err := s.send(ctx, is.ID); is.Task == "send" && err != nil && statusOf(err) != http.StatusConflict {
			return err
		}
	}
	return nil
}

func (s *shop) count(ctx context.Context, query, id string) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, query, id).Scan(&n)
	return n, err
}

// told is what the buyer or the operator is told.
func told(state merchant.State, err error) error {
	switch code := statusOf(err); {
	case errors.Is(err, merchant.ErrUnknown), err == nil && (state == merchant.New || state == merchant.Unknown || state == merchant.Ambiguous):
		return exam.ErrPending
	case state == merchant.Failed, state == merchant.Rejected, state == merchant.Withdrawn:
		return fmt.Errorf("%w: it is %s", exam.ErrRefused, state)
	case errors.Is(err, merchant.ErrNotFound):
		return exam.ErrUnknown
	case err != nil && code < http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", exam.ErrRefused, err)
	}
	return err
}

// status returns the state of an order in the exam's words.
func status(o *merchant.Order) exam.Status {
	switch {
	case o.Disputed > 0:
		return exam.StatusChargedBack
	case o.Paid > 0 && o.Left() == 0:
		return exam.StatusRefunded
	case o.Paid > 0 && !o.Settled:
		return exam.StatusReview
	case o.Refunded > 0:
		return exam.StatusPartiallyRefunded
	case o.Paid > 0:
		return exam.StatusPaid
	}
	switch c := o.Current(); {
	case c == nil:
		return exam.StatusFailed
	case c.State == merchant.Ambiguous:
		return exam.StatusReview
	case c.State == merchant.Pending:
		return exam.StatusPending
	}
	return exam.StatusUnknown
}
