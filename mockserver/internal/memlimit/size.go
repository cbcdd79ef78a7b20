package room

import (
	"unsafe"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// The sizes are estimates, in bytes, of a resource with its index entries.

// indexEntries is the size of a resource's index entries.
const indexEntries = 200

// OfEvent estimates the size of an event as a webhook, with the log of its
// delivery to one endpoint.
func OfEvent(e *engine.Event) int64 {
	const frame = 1 << 10 // the member names of the body, and the log
	switch {
	case e.Transaction != nil:
		return frame + OfTransaction(e.Transaction)
	case e.Transfer != nil:
		return frame + OfTransfer(e.Transfer)
	case e.Subscription != nil:
		return frame + OfSubscription(e.Subscription)
	}
	return frame
}

// OfTransaction estimates the size of a transaction.
func OfTransaction(t *engine.Transaction) int64 {
	n := indexEntries + of(t, t.ID, t.ExternalRef, t.Metadata, t.IPAddress, t.NotifyURL, t.SubscriptionID, t.SessionID) +
		ofCart(t.Products, t.Informations) + ofBuyer(t.Buyer)
	if t.Pix != nil {
		n += of(t.Pix, t.Pix.EndToEndID)
	}
	if t.Voucher != nil {
		n += of(t.Voucher, t.Voucher.Barcode, t.Voucher.DigitableLine)
	}
	return n
}

func ofCart(products []engine.Product, informations []engine.Information) (n int64) {
	for i := range products {
		n += of(&products[i], products[i].Name, products[i].SKU)
	}
	for i := range informations {
		n += of(&informations[i], informations[i].Key, informations[i].Value)
	}
	return n
}

func ofBuyer(b *engine.Buyer) int64 {
	if b == nil {
		return 0
	}
	n := of(b, b.ID, b.Name, b.Email, b.Phone, b.BirthDate)
	if d := b.Document; d != nil {
		n += of(d, d.Number)
	}
	if a := b.Address; a != nil {
		n += of(a, a.Street, a.Number, a.Complement, a.Neighborhood, a.City, a.State, a.ZipCode)
	}
	return n
}

// OfCustomer estimates the size of a customer.
func OfCustomer(c *engine.Customer) int64 {
	return indexEntries + of(c, c.ExternalRef) + ofBuyer(&c.Buyer)
}

// OfTransfer estimates the size of a transfer.
func OfTransfer(t *engine.Transfer) int64 {
	return indexEntries + of(t, t.ID, t.PixKey, t.Description, t.ExternalRef, t.NotifyURL)
}

// OfSubscription estimates the size of a subscription. Its customer and its
// latest transaction are counted where they are stored.
func OfSubscription(s *engine.Subscription) int64 {
	n := indexEntries + of(s, s.ID, s.Metadata, s.Comment, s.IdempotencyKey, s.BodyHash) + 8*int64(len(s.RetryOffsetsDays)) +
		ofCart(s.Products, s.Informations)
	for i := range s.ChargeIDs {
		n += of(&s.ChargeIDs[i], s.ChargeIDs[i])
	}
	if s.Authorization != nil {
		n += of(s.Authorization, s.Authorization.QRCode)
	}
	return n
}

// OfLink estimates the size of a checkout link.
func OfLink(l *engine.Link) int64 {
	return indexEntries + of(l, l.Slug, l.Title, l.Description, l.Metadata, l.SuccessURL, l.CancelURL, l.PublicToken) +
		int64(len(l.Items))*of(&engine.LinkItem{})
}

// OfProduct estimates the size of a product.
func OfProduct(p *engine.CatalogProduct) int64 {
	return indexEntries + of(p, p.ExternalID, p.Name, p.Description, p.ImageURL, p.Metadata)
}

// OfSession estimates the size of a checkout session.
func OfSession(s *engine.Session) int64 {
	n := indexEntries + of(s, s.ID, s.Token, s.Slug, s.TransactionID) + ofBuyer(s.Buyer)
	for i := range s.Attempts {
		n += of(&s.Attempts[i], s.Attempts[i].Key, s.Attempts[i].TransactionID)
	}
	return n
}

// OfResponse estimates the size of a stored response.
func OfResponse(r *engine.Response) int64 {
	return indexEntries + of(r, r.Key, r.Fingerprint, r.ETag, r.Body)
}

// of returns the size of v plus the length of its strings.
func of[T any](v *T, strings ...string) int64 {
	n := int64(unsafe.Sizeof(*v)) //nolint:gosec // a type is small
	for _, s := range strings {
		n += int64(len(s))
	}
	return n
}
