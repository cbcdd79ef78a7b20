package merchant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// LinkParams describes a checkout link.
type LinkParams struct {
	ID      string // of the offer, unique among the links of the account's book; required
	Account string // optional if there is only one

	gateway.CheckoutLinkParams
}

// Link is a checkout link, a payment page that the gateway hosts.
type Link struct {
	ID      string // yours
	Book    string // see [Account]
	Account string
	URL     string // the page to send buyers to
}

const kindLink = "checkout_links.create"

// Link creates a checkout link, or returns the one with the ID and the same parameters. If
// [Account.Links] is set, a payment by the link is a [Charge] of its own, see
// [Callbacks.Paid].
//
// The error is [ErrReused] if the ID belongs to a link with other parameters, [ErrAccount] if
// there is no such account, and [gateway.ErrValidation] if the link breaks a rule of the
// gateway: then nothing was stored. If the gateway can't be reached, it is [ErrMaybeStored]
// and that of the client: call Link again with the same parameters. If the response to the
// create was lost, the gateway may then have a second link. No buyer can pay the first one,
// because its URL is in no response that arrived.
func (m *core) Link(ctx context.Context, p LinkParams) (*Link, error) {
	a, err := m.account(p.Account)
	if err != nil {
		return nil, err
	}
	if err := identify(kindLink, "id", p.ID, "your offer"); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	link, err := m.prepareLink(ctx, a, &p)
	if err != nil || link.URL != "" {
		return link, err
	}
	created, err := a.Client.CheckoutLinks.Create(ctx, p.CheckoutLinkParams)
	if err != nil {
		return nil, m.dropLink(ctx, a, p.ID, err)
	}
	// A call at the same time may have created another one: the first that is stored counts.
	err = m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) error {
		l := m.ledger(tx)
		if err := l.SetURL(ctx, a.Book, p.ID, created.URL); err != nil {
			return err
		}
		stored, err := l.Link(ctx, a.Book, p.ID)
		if stored != nil {
			link.URL = stored.URL
		}
		return err
	})
	if err != nil {
		return nil, maybe(err)
	}
	if link.URL == "" {
		return nil, fmt.Errorf("%w: link %s was rejected in another call at the same time", ErrState, p.ID)
	}
	return link, nil
}

// dropLink forgets a link that the gateway rejected, and returns the error of the call.
func (m *core) dropLink(ctx context.Context, a *account, id string, err error) error {
	if !errors.Is(err, gateway.ErrValidation) {
		return maybe(err)
	}
	if failed := m.stored(context.WithoutCancel(ctx), func(ctx context.Context, tx sqldb.Tx, _ bool) error {
		return m.ledger(tx).DropLink(ctx, a.Name, a.Book, id)
	}); failed != nil {
		return maybe(errors.Join(err, failed))
	}
	return err
}

// prepareLink stores the link, unless it exists, and what a sale by it will look like.
func (m *core) prepareLink(ctx context.Context, a *account, p *LinkParams) (link *Link, err error) {
	record, err := encoded(&p.CheckoutLinkParams)
	if err != nil {
		return nil, err
	}
	err = m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, _ bool) error {
		l := m.ledger(tx)
		// Links of an account change each other, see addSales.
		if err := l.LockAccount(ctx, a.Name); err != nil {
			return err
		}
		if err := l.AddLink(ctx, &ledger.Link{Book: a.Book, ID: p.ID, Account: a.Name, Record: record}); err != nil {
			return err
		}
		stored, err := l.Link(ctx, a.Book, p.ID)
		switch {
		case err != nil:
			return err
		case stored == nil || stored.Account != a.Name || stored.Record != record:
			return fmt.Errorf("%w: link %s", ErrReused, p.ID)
		}
		link = &Link{ID: p.ID, Book: a.Book, Account: stored.Account, URL: stored.URL}
		if link.URL != "" {
			return nil
		}
		return addSales(ctx, l, a, p)
	})
	if err != nil {
		return nil, err
	}
	return link, nil
}

// addSales stores what a sale by the link looks like, and by the earlier links whose
// products it changes: the gateway has one product for each external id, so a link sells
// the newest version.
func addSales(ctx context.Context, l ledger.Ledger, a *account, p *LinkParams) error {
	stored, err := l.LinksOf(ctx, a.Name)
	if err != nil {
		return err
	}
	links := make([]LinkParams, len(stored))
	for i := range stored {
		links[i].ID = stored[i].ID
		if err := decode(stored[i].Record, &links[i].CheckoutLinkParams); err != nil {
			return err
		}
	}
	catalog := make(map[string]gateway.CheckoutProduct)
	for _, link := range slices.Concat(links, []LinkParams{*p}) {
		for _, product := range link.Products {
			catalog[product.ExternalID] = product
		}
	}
	for _, link := range links {
		if link.ID != p.ID && !slices.ContainsFunc(link.Products, func(x gateway.CheckoutProduct) bool {
			return x.ExternalID != "" && slices.ContainsFunc(p.Products, func(y gateway.CheckoutProduct) bool { return x.ExternalID == y.ExternalID })
		}) {
			continue
		}
		if err := l.AddSold(ctx, a.Name, link.sold(catalog), link.ID); err != nil {
			return err
		}
	}
	return nil
}

// sold returns what a sale by the link looks like. A link with an amount sells one product
// with the name of its title, or any name if it has none.
func (p *LinkParams) sold(catalog map[string]gateway.CheckoutProduct) string {
	currency := p.Currency
	lines := []gateway.ProductLine{{Name: p.Title, Price: p.Amount}}
	if len(p.Products) > 0 {
		lines = nil
	}
	for _, product := range p.Products {
		quantity := product.Quantity
		currency = cmp.Or(currency, product.Currency)
		if product.ExternalID != "" {
			product = catalog[product.ExternalID]
		}
		lines = append(lines, gateway.ProductLine{Name: product.Name, Price: product.Price, Quantity: quantity})
	}
	return soldKey(currency, lines)
}

// soldKey returns a key of names, prices and quantities, in any order.
func soldKey(currency gateway.Currency, lines []gateway.ProductLine) string {
	var texts []string
	for i := range lines {
		texts = append(texts, fmt.Sprintf("%q %d %d", lines[i].Name, lines[i].Price, max(lines[i].Quantity, 1)))
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(string(cmp.Or(currency, gateway.BRL)) + "\n" + strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:])
}

// soldBy returns the links of an account by which products may have been sold.
func (m *core) soldBy(ctx context.Context, a *account, currency gateway.Currency, lines []gateway.ProductLine) (links []string, err error) {
	if len(lines) == 0 { // as a subscription's charge, unless the subscription has products
		return nil, nil
	}
	sold := []string{soldKey(currency, lines)}
	if len(lines) == 1 { // a link without a title sells a product with any name
		sold = append(sold, soldKey(currency, []gateway.ProductLine{{Price: lines[0].Price, Quantity: lines[0].Quantity}}))
	}
	return m.outside().SoldBy(ctx, a.Name, sold...)
}
