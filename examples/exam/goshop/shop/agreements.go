package shop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Subscription is a membership that is paid by card.
type Subscription struct {
	ID        string           `json:"id"`
	Amount    int64            `json:"amount"` // cents per period
	Interval  gateway.Interval `json:"interval"`
	CardToken string           `json:"card_token"`
	Buyer     json.RawMessage  `json:"buyer,omitempty"`

	Gateway string `json:"gateway,omitempty"` // its id at the gateway
	Status  string `json:"status"`            // "unknown", "failed" or the gateway's
	Periods int    `json:"periods"`           // that were paid
	Paid    int64  `json:"paid"`              // cents in all
}

// Payout is money that the shop sends to a Pix key.
type Payout struct {
	ID     string         `json:"id"`
	Amount int64          `json:"amount"` // cents
	PixKey gateway.PixKey `json:"pix_key"`

	Gateway string `json:"gateway,omitempty"` // its id at the gateway
	Status  string `json:"status"`            // "unknown", "failed" or the gateway's
	Paid    int64  `json:"paid"`              // cents
}

// report has neither the token nor the buyer.
func (s *Subscription) report() map[string]any {
	return map[string]any{"id": s.ID, "status": s.Status, "periods": s.Periods, "paid": s.Paid}
}

func (p *Payout) report() map[string]any {
	return map[string]any{"id": p.ID, "status": p.Status, "paid": p.Paid}
}

// Subscribe starts a subscription. Its id at the shop is the idempotency key, so a
// repeat returns the first one.
func (s *Shop) Subscribe(ctx context.Context, req Subscription) (*Subscription, error) {
	if req.ID == "" || req.Amount <= 0 || req.CardToken == "" {
		return nil, invalid("id, amount in cents and card_token are required")
	}
	unlock, err := s.lock(ctx, "subscription "+req.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	sub := s.subscription(req.ID)
	if sub == nil {
		sub = &Subscription{
			ID: req.ID, Amount: req.Amount, Interval: req.Interval, CardToken: req.CardToken, Buyer: req.Buyer, Status: string(Unknown),
		}
		if err := s.save(Record{Subscription: sub}); err != nil {
			return nil, err
		}
	}
	return s.subscribe(ctx, sub)
}

func (s *Shop) subscribe(ctx context.Context, sub *Subscription) (*Subscription, error) {
	if sub.Status != string(Unknown) {
		return sub, nil
	}
	customer, err := s.customer(ctx, sub)
	if err != nil {
		return s.unsubscribed(sub, err)
	}
	made, err := s.client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
		CustomerID: customer, Amount: sub.Amount, Interval: sub.Interval, Token: gateway.CardToken(sub.CardToken),
		IdempotencyKey: refPrefix + sub.ID, Metadata: map[string]any{"shop_id": sub.ID},
	})
	if err != nil {
		return s.unsubscribed(sub, err)
	}
	return s.readSubscription(ctx, sub.ID, made.ID)
}

func (s *Shop) unsubscribed(sub *Subscription, err error) (*Subscription, error) {
	if !isRejection(err) {
		return sub, nil // a job tries again with the same key
	}
	failed := *sub
	failed.Status = string(Failed)
	return &failed, s.save(Record{Subscription: &failed})
}

// customer returns the id of the subscriber, whose reference is that of the subscription.
func (s *Shop) customer(ctx context.Context, sub *Subscription) (string, error) {
	params := gateway.CustomerParams{Name: "Subscriber " + sub.ID, Email: "subscriber@example.com", ExternalRef: refPrefix + sub.ID}
	if len(sub.Buyer) > 0 {
		var buyer gateway.BuyerParams
		if err := json.Unmarshal(sub.Buyer, &buyer); err != nil {
			return "", invalid("buyer: " + err.Error())
		}
		params.Name, params.Email, params.Document = buyer.Name, buyer.Email, buyer.Document
	}
	made, err := s.client.Customers.Create(ctx, params)
	if err == nil {
		return made.ID, nil
	}
	if !errors.Is(err, gateway.ErrDuplicate) {
		return "", err
	}
	for found, err := range s.client.Customers.All(ctx, gateway.CustomerListParams{ExternalRef: params.ExternalRef}) {
		if err != nil {
			return "", err
		}
		if found.ExternalRef == params.ExternalRef {
			return found.ID, nil
		}
	}
	return "", err
}

// readSubscription books a subscription's paid periods: they are counted at the
// gateway, so an event that comes twice adds nothing.
func (s *Shop) readSubscription(ctx context.Context, id, gatewayID string) (*Subscription, error) {
	read, err := s.client.Subscriptions.Get(ctx, gatewayID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := *s.subscriptions[id]
	periods := 0
	for _, tx := range read.Transactions {
		if tx.Status.Settled() && tx.AmountIs(sub.Amount) {
			periods++
		}
	}
	if periods >= sub.Periods { // else it is an older read
		sub.Periods, sub.Status = periods, string(read.Status)
		sub.Paid = int64(periods) * sub.Amount
	}
	sub.Gateway = gatewayID
	return &sub, s.commit(Record{Subscription: &sub})
}

func (s *Shop) subscriptionEvent(ctx context.Context, e *webhook.Event) error {
	event, err := e.Subscription()
	if err != nil {
		return err
	}
	var ours struct {
		ID string `json:"shop_id"`
	}
	_ = event.Data.Metadata.Decode(&ours) // that of another system may be anything
	if s.subscription(ours.ID) == nil {
		return nil
	}
	_, err = s.readSubscription(ctx, ours.ID, e.ResourceID)
	return err
}

func (s *Shop) tickSubscriptions(ctx context.Context) (problem error) {
	for _, id := range sorted(s, s.subscriptions) {
		unlock, err := s.lock(ctx, "subscription "+id)
		if err != nil {
			return err
		}
		sub := s.subscription(id)
		switch sub.Status {
		case string(Unknown):
			_, err = s.subscribe(ctx, sub)
		case string(Failed), string(gateway.SubscriptionCanceled):
		default:
			_, err = s.readSubscription(ctx, id, sub.Gateway)
		}
		unlock()
		problem = errors.Join(problem, err)
	}
	return problem
}

// PayOut sends money to a Pix key. Its id at the shop is the reference, so a repeat
// returns the first one.
func (s *Shop) PayOut(ctx context.Context, req Payout) (*Payout, error) {
	if req.ID == "" || req.Amount <= 0 || req.PixKey == "" {
		return nil, invalid("id, amount in cents and pix_key are required")
	}
	unlock, err := s.lock(ctx, "payout "+req.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p := s.payout(req.ID)
	if p == nil {
		p = &Payout{ID: req.ID, Amount: req.Amount, PixKey: req.PixKey, Status: string(Unknown)}
		if err := s.save(Record{Payout: p}); err != nil {
			return nil, err
		}
	}
	return s.payOut(ctx, p)
}

func (s *Shop) payOut(ctx context.Context, p *Payout) (*Payout, error) {
	if p.Status != string(Unknown) {
		return p, nil
	}
	ref := refPrefix + p.ID
	tr, err := s.client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: keyType(p.PixKey), PixKeyValue: p.PixKey, Amount: p.Amount, ExternalRef: ref,
	})
	switch {
	case err == nil:
		return s.bookPayout(p.ID, tr)
	case errors.Is(err, gateway.ErrDuplicate): // our own, from before a crash
		for tr, err := range s.client.Transfers.All(ctx, gateway.TransferListParams{Limit: 100}) {
			if err != nil {
				return p, nil
			}
			if tr.ExternalRef == ref {
				if p.is(tr) {
					return s.bookPayout(p.ID, tr)
				}
				return s.endPayout(p, Review)
			}
		}
	case isRejection(err):
		return s.endPayout(p, Failed)
	}
	return p, nil
}

func (s *Shop) endPayout(p *Payout, status Status) (*Payout, error) {
	ended := *p
	ended.Status = string(status)
	return &ended, s.save(Record{Payout: &ended})
}

// bookPayout books a transfer as it was read. Once it has ended, nothing changes.
func (s *Shop) bookPayout(id string, tr *gateway.Transfer) (*Payout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := *s.payouts[id]
	if p.ended() {
		return &p, nil
	}
	p.Gateway, p.Status = tr.ID, string(tr.Status)
	if tr.Status == gateway.TransferPaid {
		p.Paid = p.Amount
	}
	return &p, s.commit(Record{Payout: &p})
}

// is reports whether a transfer with the payout's reference is its own.
func (p *Payout) is(tr *gateway.Transfer) bool { return tr.Amount == p.Amount && tr.PixKey == p.PixKey }

func (p *Payout) ended() bool {
	return slices.Contains([]string{
		string(gateway.TransferPaid), string(gateway.TransferError), string(gateway.TransferCancelled), string(Failed), string(Review),
	}, p.Status)
}

func (s *Shop) payoutEvent(ctx context.Context, e *webhook.Event) error {
	tr, err := s.client.Transfers.Get(ctx, e.ResourceID) // most gateways' event has no reference
	if errors.Is(err, gateway.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	id, ours := strings.CutPrefix(tr.ExternalRef, refPrefix)
	if p := s.payout(id); ours && p != nil && p.is(tr) {
		_, err = s.bookPayout(id, tr)
	}
	return err
}

func (s *Shop) tickPayouts(ctx context.Context) (problem error) {
	for _, id := range sorted(s, s.payouts) {
		unlock, err := s.lock(ctx, "payout "+id)
		if err != nil {
			return err
		}
		p := s.payout(id)
		switch {
		case p.Status == string(Unknown):
			_, err = s.payOut(ctx, p)
		case !p.ended():
			var tr *gateway.Transfer
			if tr, err = s.client.Transfers.Get(ctx, p.Gateway); err == nil {
				_, err = s.bookPayout(id, tr)
			}
		}
		unlock()
		problem = errors.Join(problem, err)
	}
	return problem
}

// keyType guesses the type of a Pix key by its form.
func keyType(key gateway.PixKey) gateway.PixKeyType {
	text := string(key)
	switch {
	case strings.Contains(text, "@"):
		return gateway.PixKeyEmail
	case strings.HasPrefix(text, "+"):
		return gateway.PixKeyPhone
	case len(text) == 11:
		return gateway.PixKeyCPF
	case len(text) == 14:
		return gateway.PixKeyCNPJ
	}
	return gateway.PixKeyEVP
}

func (s *Shop) subscription(id string) *Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscriptions[id]
}

func (s *Shop) payout(id string) *Payout {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payouts[id]
}

func (s *Shop) save(r Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(r)
}

// sorted returns the ids of a map, in an order that is the same in every run.
func sorted[T any](s *Shop, all map[string]T) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
