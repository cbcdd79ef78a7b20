package exam_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/exam"
	"github.com/gateway-go/gateway/webhook"
)

// shop is a small merchant that stores each order in a file. Without a mistake it loses no
// money: it stores an order before it charges it, decides what has happened only by what
// the gateway's API says, and ships in the same write that books the payment.
type shop struct {
	p       *exam.Process
	client  *gateway.Client
	verify  *webhook.Verifier
	dir     string
	mistake string

	mu    sync.Mutex
	locks map[string]chan struct{}
	seen  map[string]bool // event ids, of a mistake
	count int
}

// file is what is stored of an order.
type file struct {
	Order       exam.Order         `json:"order"`
	Sent        time.Time          `json:"sent"` // when it was first charged
	Transaction string             `json:"transaction"`
	Refused     bool               `json:"refused"`
	Status      exam.Status        `json:"status"`
	Paid        int64              `json:"paid"`
	Refunded    int64              `json:"refunded"`
	ChargedBack int64              `json:"charged_back"`
	Shipped     int64              `json:"shipped"`
	Refunds     map[string]*refund `json:"refunds"`

	dispatch bool // the goods leave with the next write
}

type refund struct {
	Amount int64     `json:"amount"`
	Before int64     `json:"before"` // RefundedAmount when it was sent
	Seen   time.Time `json:"seen"`   // by the first tick after that
	Done   bool      `json:"done"`
}

// open starts a shop with a mistake; "" is none.
func open(mistake string) exam.StartFunc {
	return func(p *exam.Process) (http.Handler, error) {
		s := &shop{
			p: p, client: p.Client(), dir: p.Dir(), mistake: mistake, locks: map[string]chan struct{}{}, seen: map[string]bool{},
			verify: &webhook.Verifier{Keys: []webhook.SigningKey{{Key: p.Secret()}}},
		}
		hooks := exam.Hooks{Place: s.place, Report: s.report, Refund: s.refund, Tick: s.tick}
		if s.is("swallow_errors", "acks_unknown_order") {
			hooks.Tick = nil // jobs would heal what these lose
		}
		mux := http.NewServeMux()
		mux.HandleFunc("POST /webhooks", s.webhook)
		mux.Handle("/exam/", hooks)
		return mux, nil
	}
}

func (s *shop) is(mistakes ...string) bool {
	return slices.Contains(mistakes, s.mistake)
}

// lock locks an order. A mutex would not do: it is held during requests.
func (s *shop) lock(ctx context.Context, id string) (unlock func(), err error) {
	if s.is("check_then_act", "double_click", "acks_unknown_order") {
		return func() {}, nil
	}
	s.mu.Lock()
	l := s.locks[id]
	if l == nil {
		l = make(chan struct{}, 1)
		s.locks[id] = l
	}
	s.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *shop) path(id string) string { return filepath.Join(s.dir, id+".json") }

func (s *shop) load(id string) (*file, error) {
	text, err := os.ReadFile(s.path(id))
	if err != nil {
		return nil, err
	}
	f := &file{}
	return f, json.Unmarshal(text, f)
}

func (s *shop) save(f *file) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	s.p.Step()
	defer s.p.Step()
	if f.dispatch {
		f.dispatch = false
		if err := s.dispatch(f.Order.ID); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.path(f.Order.ID)+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path(f.Order.ID)+".new", s.path(f.Order.ID))
}

func (s *shop) place(ctx context.Context, o exam.Order) error {
	unlock, err := s.lock(ctx, o.ID)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.load(o.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f = &file{Order: o, Sent: time.Now(), Status: exam.StatusUnknown, Refunds: map[string]*refund{}}
		if s.is("acks_unknown_order") {
			break
		}
		if err := s.save(f); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return s.charge(ctx, f)
}

// charge charges an order, unless that has been done.
func (s *shop) charge(ctx context.Context, f *file) error {
	switch {
	case f.Refused:
		return exam.ErrRefused
	case f.Transaction != "":
		return nil
	}
	o := f.Order
	params := gateway.TransactionParams{
		ExternalRef: o.ID, Amount: o.Amount, Method: o.Method, Buyer: o.Buyer, Token: o.CardToken, Metadata: o.ID,
		Products: []gateway.Product{{Name: "Order " + o.ID, Price: o.Amount}},
	}
	if s.is("float_cents") {
		price := float64(o.Amount) / 100
		params.Amount = int64(price * 100)
		params.Products[0].Price = params.Amount
	}
	var tx *gateway.Transaction
	var err error
	if s.is("new_ref", "double_click") {
		for range 3 {
			s.mu.Lock()
			s.count++
			params.ExternalRef = fmt.Sprintf("%s-%d-%d", o.ID, s.count, time.Now().UnixNano())
			s.mu.Unlock()
			tx, err = s.client.Transactions.Create(ctx, params, gateway.MaxAttempts(1))
			if err == nil {
				break
			}
		}
	} else {
		opts := []gateway.RequestOption{gateway.FirstSent(f.Sent)}
		if s.is("timeout_is_failure") {
			opts = []gateway.RequestOption{gateway.MaxAttempts(1)}
		}
		tx, err = s.client.Transactions.Create(ctx, params, opts...)
	}
	switch {
	case err == nil:
		f.Transaction = tx.ID
		s.book(f, tx)
	case errors.Is(err, gateway.ErrOutcomeUnknown) && s.is("timeout_is_failure"),
		errors.Is(err, gateway.ErrValidation), errors.Is(err, gateway.ErrConflict):
		f.Refused, f.Status = true, exam.StatusFailed
	default:
		return err // the next click or the next tick repeats it
	}
	if err := s.save(f); err != nil {
		return err
	}
	if f.Status == exam.StatusFailed {
		return fmt.Errorf("%w: %w", exam.ErrRefused, err)
	}
	return nil
}

// book books what the gateway says about the order's transaction, and ships.
func (s *shop) book(f *file, tx *gateway.Transaction) {
	f.Paid, f.Refunded, f.ChargedBack = 0, tx.RefundedAmount, 0
	if !tx.PaidAt.IsZero() {
		f.Paid = f.Order.Amount
	}
	if tx.Status == gateway.TransactionChargedback && !s.is("chargeback_ignored") {
		f.ChargedBack = f.Paid - f.Refunded
	}
	if s.is("any_refund_is_full") && f.Refunded > 0 {
		f.Refunded = f.Paid
	}
	switch {
	case f.Paid == 0 && (tx.Status == gateway.TransactionRefused || tx.Status == gateway.TransactionExpired || tx.Status == gateway.TransactionCanceled):
		f.Status = exam.StatusFailed
	case f.Paid == 0:
		f.Status = exam.StatusPending
	case f.ChargedBack > 0:
		f.Status = exam.StatusChargedBack
	case f.Refunded == f.Paid:
		f.Status = exam.StatusRefunded
	case f.Refunded > 0:
		f.Status = exam.StatusPartiallyRefunded
	default:
		f.Status = exam.StatusPaid
	}
	if f.Paid > 0 && f.Refunded+f.ChargedBack == 0 && f.Shipped == 0 {
		f.Shipped, f.dispatch = 1, true
	}
}

// parcels has a byte for each parcel that left. Two writes of an order that overlap can't
// hide one.
func (s *shop) parcels(id string) string { return filepath.Join(s.dir, id+".parcels") }

func (s *shop) dispatch(id string) error {
	parcels, err := os.OpenFile(s.parcels(id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = parcels.WriteString(".")
	return errors.Join(err, parcels.Close())
}

// refresh reads the order's transaction and books it.
func (s *shop) refresh(ctx context.Context, f *file) error {
	tx, err := s.client.Transactions.Get(ctx, f.Transaction)
	if err != nil {
		return err
	}
	if f.Order.Amount != tx.Amount && !s.is("no_amount_check", "float_cents") {
		return fmt.Errorf("transaction %s is about another amount", tx.ID)
	}
	before := *f
	s.book(f, tx)
	if before.Status == f.Status && before.Refunded == f.Refunded && before.Paid == f.Paid {
		return nil
	}
	return s.save(f)
}

func (s *shop) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := s.verify.Verify(r.Header, body); err != nil && !s.is("unsigned") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if err := s.event(r.Context(), body); err != nil && !s.is("swallow_errors") {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *shop) event(ctx context.Context, body []byte) error {
	event, err := webhook.Parse(body)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx, event.CorrelationID)
	if err != nil {
		return err
	}
	defer unlock()
	id, _, _ := strings.Cut(event.CorrelationID, "-")
	f, err := s.load(id)
	switch {
	case err != nil && s.is("acks_unknown_order"):
		return nil
	case err != nil:
		return err
	case f.Transaction == "" && s.is("no_amount_check"):
		f.Transaction = event.ResourceID
	case f.Transaction == "" && !f.Refused:
		return errors.New("the order is not charged yet")
	case f.Transaction != event.ResourceID && !s.is("new_ref", "double_click"):
		return nil // another system's
	}
	if s.is("no_dedup", "memory_dedup", "late_overwrites", "unsigned") {
		return s.believe(f, event)
	}
	if err := s.refresh(ctx, f); err != nil {
		return err
	}
	if event.Kind == webhook.TransactionPaid && f.Paid == 0 {
		return errors.New("the gateway does not say yet that it is paid")
	}
	return nil
}

// believe books what an event says, as the shops with some mistakes do.
func (s *shop) believe(f *file, event *webhook.Event) error {
	if s.is("memory_dedup") {
		if s.seen[event.ID] {
			return nil
		}
		s.seen[event.ID] = true
	}
	switch event.Kind {
	case webhook.TransactionPaid:
		f.Status, f.Paid = exam.StatusPaid, f.Order.Amount
		if f.Shipped == 0 || s.is("no_dedup", "memory_dedup") {
			f.Shipped, f.dispatch = f.Shipped+1, true
		}
	case webhook.TransactionPending, webhook.TransactionCreated:
		if f.Paid == 0 || s.is("late_overwrites") {
			f.Status, f.Paid = exam.StatusPending, 0
		}
	default:
		return nil
	}
	return s.save(f)
}

func (s *shop) refund(ctx context.Context, r exam.Refund) error {
	unlock, err := s.lock(ctx, r.OrderID)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.load(r.OrderID)
	if err != nil || f.Transaction == "" {
		return exam.ErrRefused
	}
	if known := f.Refunds[r.ID]; known != nil {
		if known.Done {
			return nil
		}
		return exam.ErrPending // tick finds out
	}
	tx, err := s.client.Transactions.Get(ctx, f.Transaction)
	if err != nil {
		return err // nothing is stored yet
	}
	f.Refunds[r.ID] = &refund{Amount: r.Amount, Before: tx.RefundedAmount}
	if err := s.save(f); err != nil {
		return err
	}
	return s.send(ctx, f, r.ID)
}

// send sends a refund that is stored.
func (s *shop) send(ctx context.Context, f *file, id string) error {
	r := f.Refunds[id]
	_, err := s.client.Transactions.Refund(ctx, f.Transaction, gateway.RefundParams{Amount: r.Amount}, gateway.MaxAttempts(1))
	if errors.Is(err, gateway.ErrOutcomeUnknown) && s.is("refund_repeated") {
		_, err = s.client.Transactions.Refund(ctx, f.Transaction, gateway.RefundParams{Amount: r.Amount}, gateway.MaxAttempts(1))
	}
	switch {
	case err == nil:
		r.Done = true
	case errors.Is(err, gateway.ErrValidation), errors.Is(err, gateway.ErrConflict):
		delete(f.Refunds, id)
		if err := s.save(f); err != nil {
			return err
		}
		return exam.ErrRefused
	default:
		return exam.ErrPending
	}
	if err := s.save(f); err != nil {
		return err
	}
	return s.refresh(ctx, f)
}

// settle is how long an unknown refund may still arrive.
const settle = 5 * time.Minute

// tick reconciles every order.
func (s *shop) tick(ctx context.Context, now time.Time) error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := s.reconcile(ctx, strings.TrimSuffix(filepath.Base(name), ".json"), now); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) reconcile(ctx context.Context, id string, now time.Time) error {
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.load(id)
	switch {
	case err != nil:
		return err
	case f.Refused, s.is("late_overwrites") && f.Status != exam.StatusUnknown:
		return nil
	case f.Transaction == "":
		if err := s.charge(ctx, f); err != nil && !errors.Is(err, exam.ErrRefused) {
			return err
		}
		return nil
	}
	for id, r := range f.Refunds {
		switch {
		case r.Done:
			continue
		case r.Seen.IsZero():
			r.Seen = now
			if err := s.save(f); err != nil {
				return err
			}
			continue
		case now.Sub(r.Seen) < settle:
			continue
		}
		tx, err := s.client.Transactions.Get(ctx, f.Transaction)
		if err != nil {
			return err
		}
		if tx.RefundedAmount >= r.Before+r.Amount {
			r.Done = true
			if err := s.save(f); err != nil {
				return err
			}
		} else if err := s.send(ctx, f, id); err != nil {
			return err
		}
	}
	return s.refresh(ctx, f)
}

func (s *shop) report(_ context.Context, id string) (exam.Report, error) {
	f, err := s.load(id)
	if err != nil {
		return exam.Report{}, exam.ErrUnknown
	}
	r := exam.Report{
		ID: id, Status: f.Status, Paid: f.Paid, Refunded: f.Refunded, ChargedBack: f.ChargedBack,
	}
	if parcels, err := os.ReadFile(s.parcels(id)); err == nil {
		r.Shipped = int64(len(parcels))
	}
	if f.Transaction != "" && !s.is("new_ref", "double_click") {
		r.Charges = []string{f.Transaction}
	}
	return r, nil
}
