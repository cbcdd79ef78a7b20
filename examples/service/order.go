package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gateway-go/gateway"
)

// orderPrefix distinguishes the references of orders from those of payouts and
// of other systems that share the account.
const orderPrefix = "order-"

type orderState string

const (
	orderNew        orderState = "new"       // stored; its charge may or may not exist
	orderPending    orderState = "pending"   // the buyer has to pay, or to pass 3-D Secure
	orderPaid       orderState = "paid"      // ships
	orderFailed     orderState = "failed"    // expired, refused or canceled; a late payment still ships
	orderRefunding  orderState = "refunding" // requested, not confirmed
	orderRefunded   orderState = "refunded"
	orderChargeback orderState = "chargedback"
	orderReview     orderState = "review" // the amount is wrong: a person must decide
)

type order struct {
	ID        string         `json:"id"`
	Amount    int64          `json:"amount"`
	Method    gateway.Method `json:"method"`
	State     orderState     `json:"state"`
	PixCode   string         `json:"pix_code,omitempty"`
	Challenge string         `json:"challenge,omitempty"`
	Reason    string         `json:"reason,omitempty"`

	buyer         gateway.BuyerParams
	transactionID string
	refunded      int64 // so far
	createdAt     time.Time
}

const orderColumns = `id, amount, method, state, refunded, pix_code, challenge, reason, buyer_name, buyer_email, document_type, document,
	COALESCE(transaction_id, ''), created_at`

func scanOrder(row *sql.Row) (o order, err error) {
	var document gateway.Document
	err = row.Scan(&o.ID, &o.Amount, &o.Method, &o.State, &o.refunded, &o.PixCode, &o.Challenge, &o.Reason,
		&o.buyer.Name, &o.buyer.Email, &document.Type, &document.Number, &o.transactionID, &o.createdAt)
	if document.Number != "" {
		o.buyer.Document = &document
	}
	return o, err
}

func (s *shop) order(ctx context.Context, id string) (order, error) {
	return scanOrder(s.db.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE id = $1`, id))
}

// insertOrder stores the order before anything is charged, and returns what is
// stored under its id: the same order, if the page sent it twice. The row has
// everything that the charge needs, because a repeat must send the same charge.
func (s *shop) insertOrder(ctx context.Context, o order) (stored order, repeated bool, err error) {
	document := cmp.Or(o.buyer.Document, &gateway.Document{})
	repeated, err = exists(ctx, s.db, `INSERT INTO orders (id, amount, method, buyer_name, buyer_email, document_type, document)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
		o.ID, o.Amount, string(o.Method), o.buyer.Name, o.buyer.Email, string(document.Type), document.Number)
	if err != nil {
		return order{}, false, err
	}
	stored, err = s.order(ctx, o.ID)
	return stored, repeated, err
}

// payment is the state of an order's transaction in an event or a response.
type payment struct {
	id       string
	status   gateway.TransactionStatus
	amount   int64                  // what the buyer was charged
	matches  func(cents int64) bool // whether cents is the amount of the transaction
	currency gateway.Currency
	method   gateway.Method // "" in an event
	refunded int64          // so far; 0 in an event
	code     string         // the Pix code, "" if it is not known
	secret   string         // of a 3-D Secure challenge
}

func paymentOf(tx *gateway.Transaction) payment {
	p := payment{id: tx.ID, status: tx.Status, amount: tx.Charged(), matches: tx.AmountIs, currency: tx.Currency, method: tx.Method, refunded: tx.RefundedAmount}
	if tx.Pix != nil {
		p.code = tx.Pix.QRCode
	}
	if tx.NextAction != nil {
		p.secret = tx.NextAction.ClientSecret.Reveal()
	}
	return p
}

// next returns the order's state after a payment's. Events arrive late and in
// any order, so it never goes back.
func (o *order) next(p payment) (next orderState, reason string) {
	waiting := o.State == orderNew || o.State == orderPending
	switch {
	case o.State == orderReview, o.State == orderChargeback:
		return o.State, o.Reason
	case waiting && p.method != "" && (p.method != o.Method || !p.matches(o.Amount) || p.currency != gateway.BRL):
		return orderReview, "the charge with its reference is of " + gateway.FormatAmount(p.amount, p.currency) + ", and not the order's"
	case p.status == gateway.TransactionChargedback:
		return orderChargeback, "charged back"
	case o.State == orderRefunded:
		return o.State, o.Reason
	case p.status == gateway.TransactionRefunded:
		return orderRefunded, ""
	case p.status.Settled() && (!p.matches(o.Amount) || p.currency != gateway.BRL):
		return orderReview, fmt.Sprintf("paid %s, not %s", gateway.FormatAmount(p.amount, p.currency), gateway.FormatAmount(o.Amount, gateway.BRL))
	case p.status.Settled() && (waiting || o.State == orderFailed):
		return orderPaid, ""
	case p.status.Final() && waiting:
		return orderFailed, string(p.status)
	case o.State == orderNew:
		return orderPending, ""
	default:
		return o.State, o.Reason
	}
}

// apply writes a payment to its order and, if the order becomes paid, the
// shipment. tx is the transaction of sqlstore.HandleTx, in which an event counts
// exactly once, or the shop's own after an API call.
func (s *shop) apply(ctx context.Context, tx *sql.Tx, orderID string, p payment) (order, error) {
	o, err := scanOrder(tx.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE id = $1 FOR UPDATE`, orderID))
	if err != nil {
		return order{}, err
	}
	if o.transactionID != "" && o.transactionID != p.id {
		return order{}, fmt.Errorf("order %s belongs to transaction %s, not %s", o.ID, o.transactionID, p.id)
	}
	before := o.State
	o.transactionID = p.id
	o.State, o.Reason = o.next(p)
	o.refunded = max(o.refunded, p.refunded)
	if p.code != "" {
		o.PixCode = p.code
	}
	if p.secret != "" {
		o.Challenge = p.secret
	}
	if o.State != orderPending {
		o.Challenge = ""
	}
	if o.State == orderReview { // it may be the code of another system's charge
		o.PixCode = ""
	}
	// The charge exists, so the document is not needed again.
	err = changesOne(ctx, tx, `UPDATE orders SET state = $2, reason = $3, transaction_id = $4, pix_code = $5, challenge = $6,
		refunded = $7, document_type = '', document = '' WHERE id = $1`,
		o.ID, string(o.State), o.Reason, o.transactionID, o.PixCode, o.Challenge, o.refunded)
	if err != nil || before == o.State {
		return o, err
	}
	s.log.InfoContext(ctx, "order changed", slog.String("order", o.ID), slog.String("from", string(before)),
		slog.String("to", string(o.State)), slog.String("transaction", o.transactionID))
	if o.State != orderPaid {
		return o, nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO shipments (order_id) VALUES ($1)`, o.ID)
	return o, err
}

// settle applies what the API returned.
func (s *shop) settle(ctx context.Context, orderID string, tx *gateway.Transaction) (o order, err error) {
	err = s.inTx(ctx, func(db *sql.Tx) error {
		o, err = s.apply(ctx, db, orderID, paymentOf(tx))
		return err
	})
	return o, err
}

// failOrder ends an order that was never charged.
func (s *shop) failOrder(ctx context.Context, id, reason string) error {
	err := changesOne(ctx, s.db, `UPDATE orders SET state = 'failed', reason = $2, document_type = '', document = ''
		WHERE id = $1 AND state = 'new'`, id, reason)
	if errors.Is(err, errNoRow) {
		return nil // a webhook came first
	}
	return err
}
