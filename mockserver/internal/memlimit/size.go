package memlimit

import (
	"unsafe"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// Sizes are estimates, in bytes, and include a resource's index entries.

// indexEntries is the size of a resource's index entries.
const indexEntries = 200

// SizeOfEvent estimates the size of an event's webhook and of the log of its delivery to
// one endpoint.
func SizeOfEvent(e *engine.Event) int64 {
	const frame = 1 << 10 // the body's member names, and the log
	switch {
	case e.Transaction != nil:
		return frame + SizeOfTransaction(e.Transaction)
	case e.Transfer != nil:
		return frame + SizeOfTransfer(e.Transfer)
	case e.Subscription != nil:
		return frame + SizeOfSubscription(e.Subscription)
	}
	return frame
}

// SizeOfTransaction estimates the size of a transaction.
func SizeOfTransaction(t *engine.Transaction) int64 {
	n := indexEntries + sizeOf(t, t.ID, t.ExternalRef, t.Metadata, t.IPAddress, t.NotifyURL, t.SubscriptionID, t.SessionID) +
		sizeOfCart(t.Products, t.Informations) + sizeOfBuyer(t.Buyer)
	if t.Pix != nil {
		n += sizeOf(t.Pix, t.Pix.EndToEndID)
	}
	if t.Voucher != nil {
		n += sizeOf(t.Voucher, t.Voucher.Barcode, t.Voucher.DigitableLine)
	}
	return n
}

func sizeOfCart(products []engine.Product, informations []engine.Information) (n int64) {
	for i := range products {
		n += sizeOf(&products[i], products[i].Name, products[i].SKU)
	}
	for i := range informations {
		n += sizeOf(&informations[i], informations[i].Key, informations[i].Value)
	}
	return n
}

func sizeOfBuyer(b *engine.Buyer) int64 {
	if b == nil {
		return 0
	}
	n := sizeOf(b, b.ID, b.Name, b.Email, b.Phone, b.BirthDate)
	if d := b.Document; d != nil {
		n += sizeOf(d, d.Number)
	}
	if a := b.Address; a != nil {
		n += sizeOf(a, a.Street, a.Number, a.Complement, a.Neighborhood, a.City, a.State, a.ZipCode)
	}
	return n
}

// SizeOfCustomer estimates the size of a customer.
func SizeOfCustomer(c *engine.Customer) int64 {
	return indexEntries + sizeOf(c, c.ExternalRef) + sizeOfBuyer(&c.Buyer)
}

// SizeOfTransfer estimates the size of a transfer.
func SizeOfTransfer(t *engine.Transfer) int64 {
	return indexEntries + sizeOf(t, t.ID, t.PixKey, t.Description, t.ExternalRef, t.NotifyURL)
}

// SizeOfSubscription estimates the size of a subscription without its customer and its
// latest transaction, which are stored separately.
func SizeOfSubscription(s *engine.Subscription) int64 {
	n := indexEntries + sizeOf(s, s.ID, s.Metadata, s.Comment, s.IdempotencyKey, s.BodyHash) + 8*int64(len(s.RetryOffsetsDays)) +
		sizeOfCart(s.Products, s.Informations)
	for i := range s.ChargeIDs {
		n += sizeOf(&s.ChargeIDs[i], s.ChargeIDs[i])
	}
	if s.Authorization != nil {
		n += sizeOf(s.Authorization, s.Authorization.QRCode)
	}
	return n
}

// SizeOfLink estimates the size of a checkout link.
func SizeOfLink(l *engine.Link) int64 {
	return indexEntries + sizeOf(l, l.Slug, l.Title, l.Description, l.Metadata, l.SuccessURL, l.CancelURL, l.PublicToken) +
		int64(len(l.Items))*sizeOf(&engine.LinkItem{})
}

// SizeOfProduct estimates the size of a product.
func SizeOfProduct(p *engine.CatalogProduct) int64 {
	return indexEntries + sizeOf(p, p.ExternalID, p.Name, p.Description, p.ImageURL, p.Metadata)
}

// SizeOfSession estimates the size of a checkout session.
func SizeOfSession(s *engine.Session) int64 {
	n := indexEntries + sizeOf(s, s.ID, s.Token, s.Slug, s.TransactionID) + sizeOfBuyer(s.Buyer)
	for i := range s.Attempts {
		n += sizeOf(&s.Attempts[i], s.Attempts[i].Key, s.Attempts[i].TransactionID)
	}
	return n
}

// SizeOfResponse estimates the size of a stored response.
func SizeOfResponse(r *engine.Response) int64 {
	return indexEntries + sizeOf(r, r.Key, r.Fingerprint, r.ETag, r.Body)
}

// sizeOf returns the size of v plus the length of its strings.
func sizeOf[T any](v *T, strings ...string) int64 {
	n := int64(unsafe.Sizeof(*v)) //nolint:gosec // a type is small
	for _, s := range strings {
		n += int64(len(s))
	}
	return n
}
