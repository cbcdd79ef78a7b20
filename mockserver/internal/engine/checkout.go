package engine

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// The states of a checkout link.
const (
	linkActive    = "active"
	linkExhausted = "exhausted"
	linkExpired   = "expired"
	linkInactive  = "inactive"
)

// TimerExpireLink expires a link; its ID is the slug.
const TimerExpireLink TimerKind = "checkout.expire_link"

// NewLink is a request for a checkout link: the members of the resource that the
// request sets, and its products. Empty members get their defaults.
type NewLink struct {
	Link

	Sold []NewLinkItem // empty for a link with an amount
}

// NewLinkItem is a product as the request describes it.
type NewLinkItem struct {
	CatalogProduct

	Quantity int
}

// ExistingForLink is the data of the account on which a new link depends.
type ExistingForLink struct {
	Links    int // number of links
	Products int // number of catalog products
	Product  func(externalID string) *CatalogProduct
}

// CreateLink creates a checkout link. A product whose external id already exists
// is updated, in every link that sells it.
func CreateLink(env Env, in NewLink, existing ExistingForLink) (Change, *Refusal) {
	if !in.ExpiresAt.IsZero() && !in.ExpiresAt.After(env.Now) {
		return Change{}, Invalid("expires_at", spec.CodeInvalid, spec.MustBeAfter(env.Now))
	}
	l := in.Link
	l.ID = int64(existing.Links + 1)
	l.Slug = strings.ToLower(env.IDs.Alphanumeric(12))
	l.PublicToken = publicKey(env)
	l.Status = linkActive
	for _, sold := range in.Sold { // the rules reject products in different currencies
		l.Currency = cmp.Or(l.Currency, sold.Currency)
	}
	l.Currency = cmp.Or(l.Currency, "BRL")
	if len(l.PaymentMethods) == 0 {
		l.PaymentMethods = []string{pix, voucher, card}
	}
	l.CreatedAt, l.UpdatedAt = env.Now, env.Now
	catalog := catalogUpdate{existing: existing}
	var wrong []spec.Violation
	for i, sold := range in.Sold {
		if known := catalog.known(sold.ExternalID); known != nil && known.Currency != "" && known.Currency != l.CurrencyOf(&sold.CatalogProduct) {
			wrong = append(wrong, spec.Violation{
				Field: "products[" + strconv.Itoa(i) + "].currency", Code: spec.CodeInvalid,
				Message: "must be " + known.Currency + ", the currency in which earlier links sell this external_id",
			})
			continue
		}
		p := catalog.upsert(sold.CatalogProduct)
		l.Items = append(l.Items, LinkItem{
			ID:        l.ID*100 + int64(i+1),
			ProductID: p.ID,
			Quantity:  max(sold.Quantity, 1),
		})
	}
	if wrong != nil {
		return Change{}, InvalidFields(wrong)
	}
	c := Change{Links: []*Link{&l}, Products: catalog.changed}
	if !l.ExpiresAt.IsZero() {
		c.Timers = []Timer{{At: l.ExpiresAt, Kind: TimerExpireLink, ID: l.Slug}}
	}
	return c, nil
}

// publicKey generates the key that a link's page passes to the client-side
// payment element.
func publicKey(env Env) string {
	prefix := "pk_live_"
	if env.Sandbox {
		prefix = "pk_test_"
	}
	return prefix + strings.ToLower(env.IDs.Alphanumeric(24))
}

// catalogUpdate collects the products that a new link adds or updates.
type catalogUpdate struct {
	existing ExistingForLink
	added    int
	changed  []*CatalogProduct
}

// upsert adds a product, or replaces the one with its external id.
func (c *catalogUpdate) upsert(p CatalogProduct) *CatalogProduct {
	p.Type = cmp.Or(p.Type, "physical")
	if known := c.known(p.ExternalID); known != nil {
		p.ID = known.ID
	} else {
		c.added++
		p.ID = int64(c.existing.Products + c.added)
	}
	c.changed = append(c.changed, &p)
	return &p
}

// known finds a product by its external id, including those of the same request.
func (c *catalogUpdate) known(externalID string) *CatalogProduct {
	if externalID == "" {
		return nil
	}
	for _, p := range c.changed {
		if p.ExternalID == externalID {
			return p
		}
	}
	return c.existing.Product(externalID)
}

// CurrencyOf returns the currency of a product in l. It is that of the link,
// except in a link of an earlier version, which may have products in two
// currencies.
func (l *Link) CurrencyOf(p *CatalogProduct) string { return cmp.Or(p.Currency, l.Currency) }

// Catalog finds a product by its id.
type Catalog func(id int64) *CatalogProduct

// Total returns the total of l in cents: its amount, or the sum of its products at
// their current prices. It is at most the largest integer that every JSON parser
// reads exactly.
func (l *Link) Total(products Catalog) int64 {
	sum := l.Amount
	for _, item := range l.Items {
		price := products(item.ProductID).Price
		if price > 0 && int64(item.Quantity) > (spec.MaxSafeAmount-sum)/price {
			return spec.MaxSafeAmount
		}
		sum += price * int64(item.Quantity)
	}
	return sum
}

// lineItems returns the products as a transaction lists them.
func (l *Link) lineItems(products Catalog) []Product {
	if len(l.Items) == 0 {
		return []Product{{Name: cmp.Or(l.Title, "Checkout"), Price: l.Amount, Quantity: 1}}
	}
	list := make([]Product, len(l.Items))
	for i, item := range l.Items {
		p := products(item.ProductID)
		list[i] = Product{
			Name:     p.Name,
			Price:    p.Price,
			Quantity: item.Quantity,
			Tangible: p.Type == "physical",
			SKU:      p.ExternalID,
		}
	}
	return list
}

// gone rejects a transition that requires an active link.
func (l *Link) gone() *Refusal {
	if l.Status == linkActive {
		return nil
	}
	return NewRefusal(CodeCheckoutGone,
		"This checkout link is "+l.Status+".")
}

// ExpireLink expires a link and those of its sessions that wait for their buyer.
func ExpireLink(env Env, l *Link, sessions []*Session) (Change, *Refusal) {
	return closeLink(env, l, sessions, linkExpired)
}

// DeactivateLink deactivates a link, as its merchant would, and expires those of
// its sessions that wait for their buyer.
func DeactivateLink(env Env, l *Link, sessions []*Session) (Change, *Refusal) {
	return closeLink(env, l, sessions, linkInactive)
}

// ExpireLinkByTimer is ExpireLink for its timer. Before the expiry it changes
// nothing.
func ExpireLinkByTimer(env Env, l *Link, sessions []*Session) Change {
	if env.Now.Before(l.ExpiresAt) {
		return Change{}
	}
	c, _ := ExpireLink(env, l, sessions)
	return c
}

func closeLink(env Env, l *Link, sessions []*Session, status string) (Change, *Refusal) {
	if l.Status != linkActive {
		return Change{}, NewRefusal(CodeInvalidState, "A checkout link that is "+l.Status+" can't become "+status+".")
	}
	c := Change{Links: []*Link{l.to(env.Now, status)}}
	for _, s := range sessions {
		if s.waiting() {
			c.Sessions = append(c.Sessions, s.to(env.Now, sessionExpired))
		}
	}
	return c, nil
}

func (l *Link) to(now time.Time, status string) *Link {
	next := *l
	next.Status = status
	next.UpdatedAt = now
	return &next
}

// Active reports whether l can be paid.
func Active(l *Link) bool { return l.Status == linkActive }

// Exhausted reports whether l has been paid as often as its max_uses allows.
func Exhausted(l *Link) bool { return l.MaxUses > 0 && l.UsedCount >= l.MaxUses }

// use counts a completed session.
func (l *Link) use(now time.Time) *Link {
	next := l.to(now, l.Status)
	next.UsedCount++
	if next.Status == linkActive && Exhausted(next) {
		next.Status = linkExhausted
	}
	return next
}
