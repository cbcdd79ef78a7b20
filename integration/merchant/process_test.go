package merchant_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

func TestMain(m *testing.M) { storm.Main(m, runShop) }

// processSpec configures a process of a shop.
type processSpec struct {
	Kind     string // of the database
	Database string
	Gateway  string
	Key      string
	Secret   string
	Death    float64 // the probability of killing itself at each point
	Failing  float64 // the probability that a callback fails, after its effect
	Defect   defect
}

// defect is a mistake in the merchant's side, which the storm must find.
type defect string

const (
	noOrderLock defect = "no lock of the order"
	outside     defect = "effects outside the transaction"
	anyOrder    defect = "callbacks in any order"
)

// change seeds a defect into the statements of package merchant.
func (d defect) change(statement string) string {
	switch {
	case d == noOrderLock && strings.Contains(statement, "FROM gateway_orders"):
		return strings.Replace(statement, "FOR UPDATE", "", 1)
	case d == anyOrder:
		return notFirst.ReplaceAllString(statement, "AND (1 = 1 OR $1)")
	}
	return statement
}

var notFirst = regexp.MustCompile(`AND (\(SELECT e\.seq FROM (?s:.*?) LIMIT 1\) IS NULL)`)

// shop is a process of a shop.
type shop struct {
	processSpec
	kind kind
	db   *sql.DB
	tap  *tap
	m    *merchant.Merchant[*txn]
}

func runShop(ctx context.Context, spec processSpec) error {
	s := &shop{processSpec: spec}
	s.kind = kindNamed(spec.Kind)
	tap, err := s.kind.tap(ctx, spec.Database, spec.Defect.change)
	if err != nil {
		return err
	}
	s.db, s.tap = tap.db, tap
	client, err := gateway.New(spec.Gateway, gateway.BearerToken(spec.Key), gateway.WithAccount("shop"),
		gateway.WithHTTPClient(&http.Client{Transport: &death{probability: spec.Death, next: &http.Transport{MaxIdleConnsPerHost: 16}}}))
	if err != nil {
		return err
	}
	s.m, err = merchant.Open(ctx, tap.on(s.kind), merchant.Config{
		Accounts:    []merchant.Account{{Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: gateway.NewSecret(spec.Secret)}}, Zone: time.UTC}},
		SendTimeout: time.Second, SettleAfter: 2 * time.Second, PollInterval: 100 * time.Millisecond,
		CallbackTimeout: 10 * time.Second, Workers: 4, Logger: quiet, SecondPayment: merchant.RefundSecondPayment,
	}, s.callbacks())
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.m.Run(ctx) }()
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", s.m.Webhook("shop"))
	mux.HandleFunc("POST /charge", s.serve(s.charge))
	mux.HandleFunc("POST /refund", s.serve(s.refund))
	mux.HandleFunc("POST /close", s.serve(s.close))
	return errors.Join(storm.Serve(ctx, mux), <-ended, tap.close())
}

func (s *shop) serve(do func(r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(r); err != nil {
			status := http.StatusServiceUnavailable
			if errors.Is(err, merchant.ErrState) || errors.Is(err, merchant.ErrLeft) {
				status = http.StatusConflict
			}
			http.Error(w, err.Error(), status)
		}
	}
}

// inTx runs a transaction of the shop.
func (s *shop) inTx(ctx context.Context, run func(tx *txn) error) error {
	return dbms.Repeat(ctx, func() error {
		tx, err := begin(context.WithoutCancel(ctx), s.db, s.tap.pool, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if err := run(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func (s *shop) charge(r *http.Request) error {
	amount, err := strconv.ParseInt(r.FormValue("amount"), 10, 64)
	if err != nil {
		return err
	}
	p := pix(r.FormValue("order"), amount)
	if r.FormValue("method") == "card" {
		p = card(p.Order, amount)
	}
	if r.FormValue("later") != "" { // Run sends it
		ctx := r.Context()
		return s.inTx(ctx, func(tx *txn) error {
			_, err := s.m.ChargeTx(ctx, tx, p)
			return err
		})
	}
	_, err = s.m.Charge(r.Context(), p)
	return err
}

func (s *shop) refund(r *http.Request) error {
	var p merchant.RefundParams
	if err := json.Unmarshal([]byte(r.FormValue("params")), &p); err != nil {
		return err
	}
	_, err := s.m.Refund(r.Context(), p)
	return err
}

func (s *shop) close(r *http.Request) error {
	ctx, order := r.Context(), r.FormValue("order")
	return s.inTx(ctx, func(tx *txn) error { return s.m.CloseOrderTx(ctx, tx, order) })
}

// callbacks are those of a shop: each logs its call, and may fail after that.
func (s *shop) callbacks() merchant.Callbacks[*txn] {
	ofCharge := func(name string) func(context.Context, *txn, *merchant.Charge) error {
		return func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			return s.called(ctx, tx, name, c.Order, c.ID)
		}
	}
	ofRefund := func(name string) func(context.Context, *txn, *merchant.Refund) error {
		return func(ctx context.Context, tx *txn, r *merchant.Refund) error {
			return s.called(ctx, tx, name, r.Order.ID, cmp.Or(r.ID, r.Charge))
		}
	}
	return merchant.Callbacks[*txn]{
		Goods: func(ctx context.Context, tx *txn, g *merchant.Goods) error {
			return s.called(ctx, tx, "goods", g.Order, string(g.State))
		},
		Paid: ofCharge("paid"), Unpaid: ofCharge("unpaid"), Disputed: ofCharge("disputed"),
		Refunded: ofRefund("refunded"), RefundRejected: ofRefund("refund_rejected"),
		PaidAgain: func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			return s.called(ctx, tx, "paid_again", c.Order, c.ID)
		},
		Problem: func(ctx context.Context, tx *txn, p *merchant.Problem) error {
			return s.called(ctx, tx, "problem", p.Order, p.Record)
		},
	}
}

var errCallback = errors.New("a bug in a callback")

func (s *shop) called(ctx context.Context, tx *txn, name, order, record string) error {
	exec := tx.ExecContext
	if s.Defect == outside {
		exec = s.db.ExecContext
	}
	w := world{dialect: s.kind.dialect}
	if _, err := exec(ctx, w.sql(`INSERT INTO called (subject, callback, record) VALUES (?, ?, ?)`), "order/"+order, name, record); err != nil {
		return err
	}
	die(s.Death)
	switch p := rand.Float64(); {
	case p < s.Failing/2:
		return errCallback
	case p < s.Failing:
		panic(errCallback)
	}
	return nil
}

func die(probability float64) {
	if rand.Float64() < probability {
		storm.Die()
	}
}

// death kills its process before and after a write.
type death struct {
	next        http.RoundTripper
	probability float64
}

func (d *death) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return d.next.RoundTrip(req)
	}
	die(d.probability)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { die(d.probability) }}
	resp, err := d.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	die(d.probability)
	return resp, err
}
