package merchant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
)

// onSale reads a transaction that no record matches, and books it if it was sold by link.
func (m *core) onSale(ctx context.Context, a *account, e *webhook.TransactionEvent) (ours bool, err error) {
	r, err := a.readTransaction(ctx, e.ResourceID, books.FromWebhook)
	if err != nil {
		return false, err
	}
	if ours, err = m.sale(ctx, a, r, e.Age); err != nil {
		return false, err
	}
	if books.Behind(r.Resource.Status, e.State()) {
		return ours, m.behind(e.Event, "transaction", string(r.Resource.Status))
	}
	return ours, nil
}

// sale books a transaction as a sale by link, if it is one: it was paid, has no reference,
// has the products of a link, and is not a subscription's charge. It is not ours if it belongs to
// another system of the account. known is for how long it has been known to be there, 0 if it is
// read for the first time.
func (m *core) sale(ctx context.Context, a *account, r books.Reading[gateway.Transaction], known time.Duration) (ours bool, err error) {
	t := r.Resource
	if t.ExternalRef != "" {
		return false, nil
	}
	links, err := m.soldBy(ctx, a, t.Currency, t.Products)
	switch {
	case err != nil || len(links) == 0:
		return false, err
	case !books.Pays(t.Status):
		return true, nil
	}
	if adopted, err := m.outside().IsAdopted(ctx, a.Name, ledger.Charges, t.ID); err != nil || adopted {
		return false, err
	}
	switch charged, err := m.subscribed(ctx, a, t, max(m.clock.now().Sub(paidOrMade(t)), known)); {
	case errors.Is(err, errUndecided):
		return true, m.undecidedSale(ctx, a, t)
	case err != nil || charged:
		return false, err
	}
	at := place{subject: ledger.SaleSubject(a.Book, t.ID), lock: ledger.New, charges: true}
	return true, m.db.Transaction(ctx, func(tx sqldb.Tx) error {
		rows, err := m.ledger(tx).Rows(ctx, ledger.Charges, ledger.Where{Account: a.Name, Resource: t.ID})
		if err != nil || len(rows) > 0 && rows[0].Subject != at.subject { // it has a charge that is no sale
			return err
		}
		return m.on(ctx, tx, at, func(b *bench) error {
			if len(b.charges) == 0 {
				b.addSale(a, t, links)
				b.over(a, &books.Over{Kind: books.IsUnmatched, Record: strings.ToLower(t.ID)}) // it is decided now
			}
			b.book(b.charges[0], r)
			return nil
		})
	})
}

// addSale puts the charge of a sale on the bench.
func (b *bench) addSale(a *account, t *gateway.Transaction, links []string) {
	sold := chargeRecord{
		Books: books.Seen(strings.ToLower(t.ID), books.FromLink, t), Amount: t.Amount, Currency: t.Currency, Method: t.Method,
		Installments: max(t.Installments, 1), Buyer: &t.Buyer,
	}
	if len(links) == 1 {
		sold.Link = links[0]
	}
	b.newCharge(a, sold, "")
}

// maxSubscriptions is how many subscriptions of one buyer are searched for a charge.
const maxSubscriptions = 50

// errUndecided reports that it can't be found out whether a transaction is a
// subscription's charge.
var errUndecided = errors.New("merchant: it is not known whether the transaction is a subscription's charge")

// subscribed reports whether a transaction is the charge of a subscription, which has no
// reference either, and may have the products of a link. Only the subscription says so: that
// the key must not list any proves nothing, and that none is listed does when the gateway no
// longer lags. age is that of the transaction: if the gateway's clock is ahead, as that of a mock, it
// is for how long the transaction has been known.
func (m *core) subscribed(ctx context.Context, a *account, t *gateway.Transaction, age time.Duration) (bool, error) {
	if a.NoSubscriptions {
		return false, nil
	}
	service := a.Client.Subscriptions
	switch page, err := service.List(ctx, gateway.SubscriptionListParams{Limit: 1}); {
	case errors.Is(err, gateway.ErrForbidden):
		return false, forbidden(t, age)
	case err != nil:
		return false, err
	case len(page.Items) == 0:
		return false, m.unlisted(t, age)
	case t.Buyer.Email == "":
		return false, errUndecided
	}
	n := 0
	for item, err := range service.All(ctx, gateway.SubscriptionListParams{CustomerEmail: t.Buyer.Email, Limit: 100}) {
		if err != nil {
			return false, err
		}
		if n++; n > maxSubscriptions {
			return false, errUndecided
		}
		s, err := service.Get(ctx, item.ID)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(s.Transactions, func(charge gateway.SubscriptionTransaction) bool { return strings.EqualFold(charge.ID, t.ID) }) {
			return true, nil
		}
	}
	return false, m.unlisted(t, age)
}

// forbiddenFor is how long the list of subscriptions may be forbidden, as by a firewall, before
// a person must look.
const forbiddenFor = day

// forbidden returns an error while the list of subscriptions, which is forbidden, may be
// readable again, and then errUndecided.
func forbidden(t *gateway.Transaction, age time.Duration) error {
	if age >= forbiddenFor {
		return errUndecided
	}
	return fmt.Errorf("whether transaction %s was sold by link or belongs to a subscription is not known, because the list of subscriptions is forbidden: %w",
		t.ID, webhook.RetryAfter(growing(age)))
}

// paidOrMade returns when a transaction was paid, or else made: a subscription that has charged
// it is not younger than that.
func paidOrMade(t *gateway.Transaction) time.Time {
	if t.PaidAt.After(t.CreatedAt.Time) {
		return t.PaidAt.Time
	}
	return t.CreatedAt.Time
}

// unlisted returns an error while a subscription that has charged a transaction may not be
// listed yet.
func (m *core) unlisted(t *gateway.Transaction, age time.Duration) error {
	if v, wait := books.Absence(books.ByList, age, m.cfg.lag()); v == books.NotYet {
		return fmt.Errorf("whether transaction %s was sold by link or belongs to a subscription is known in %s: %w", t.ID, wait.Round(time.Second), webhook.RetryAfter(wait))
	}
	return nil
}

// undecidedSale makes a problem of a transaction that may be a sale.
func (m *core) undecidedSale(ctx context.Context, a *account, t *gateway.Transaction) error {
	subject := ledger.SaleSubject(a.Book, t.ID)
	return m.once(ctx, place{subject: subject}, func(b *bench) error {
		b.problem(a, &books.Problem{
			Key: string(books.IsUnmatched) + "/" + subject.ID, Kind: books.IsUnmatched, Record: strings.ToLower(t.ID),
			Text: fmt.Sprintf("transaction %s has the products of a link, and may be a subscription's charge: its buyer's e-mail address does not tell, so it is not booked", t.ID),
		})
		return nil
	})
}
