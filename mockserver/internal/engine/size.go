package engine

import "unsafe"

// The sizes are about what a record and its index entries take, in bytes, for
// the store's memory limit.

const indexEntries = 200

// Size returns about what the event takes as a webhook, with the log of its
// delivery to one receiver.
func (e *Event) Size() int {
	const frame = 1 << 10 // the names of the body's members, and the log
	switch {
	case e.Transaction != nil:
		return frame + e.Transaction.Size()
	case e.Transfer != nil:
		return frame + e.Transfer.Size()
	case e.Subscription != nil:
		return frame + e.Subscription.Size()
	}
	return frame
}

// Size returns about what the transaction takes.
func (t *Transaction) Size() int {
	n := indexEntries + int(unsafe.Sizeof(*t)) + len(t.ID) + len(t.ExternalRef) + len(t.Metadata) + len(t.IPAddress) +
		len(t.NotifyURL) + len(t.SubscriptionID) + len(t.SessionID)
	for _, p := range t.Products {
		n += int(unsafe.Sizeof(p)) + len(p.Name) + len(p.SKU)
	}
	for _, i := range t.Informations {
		n += int(unsafe.Sizeof(i)) + len(i.Key) + len(i.Value)
	}
	if t.Pix != nil {
		n += int(unsafe.Sizeof(*t.Pix)) + len(t.Pix.EndToEndID)
	}
	if t.Voucher != nil {
		n += int(unsafe.Sizeof(*t.Voucher)) + len(t.Voucher.Barcode) + len(t.Voucher.DigitableLine)
	}
	return n + t.Buyer.size()
}

func (b *Buyer) size() int {
	if b == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*b)) + len(b.ID) + len(b.Name) + len(b.Email) + len(b.Phone) + len(b.BirthDate)
	if d := b.Document; d != nil {
		n += int(unsafe.Sizeof(*d)) + len(d.Number)
	}
	if a := b.Address; a != nil {
		n += int(unsafe.Sizeof(*a)) + len(a.Street) + len(a.Number) + len(a.Complement) + len(a.Neighborhood) +
			len(a.City) + len(a.State) + len(a.ZipCode)
	}
	return n
}

// Size returns about what the customer takes.
func (c *Customer) Size() int {
	return indexEntries + int(unsafe.Sizeof(*c)) + c.Buyer.size() + len(c.ExternalRef)
}

// Size returns about what the transfer takes.
func (t *Transfer) Size() int {
	return indexEntries + int(unsafe.Sizeof(*t)) + len(t.ID) + len(t.PixKey) + len(t.Description) + len(t.ExternalRef) +
		len(t.NotifyURL)
}

// Size returns about what the subscription takes. Its customer and its latest
// transaction are counted where they are kept.
func (s *Subscription) Size() int {
	n := indexEntries + int(unsafe.Sizeof(*s)) + len(s.ID) + len(s.Metadata) + len(s.Comment) + len(s.IdempotencyKey) +
		len(s.BodyHash) + 8*len(s.RetryOffsetsDays)
	for _, id := range s.ChargeIDs {
		n += int(unsafe.Sizeof(id)) + len(id)
	}
	for _, p := range s.Products {
		n += int(unsafe.Sizeof(p)) + len(p.Name) + len(p.SKU)
	}
	for _, i := range s.Informations {
		n += int(unsafe.Sizeof(i)) + len(i.Key) + len(i.Value)
	}
	if s.Authorization != nil {
		n += int(unsafe.Sizeof(*s.Authorization)) + len(s.Authorization.QRCode)
	}
	return n
}

// Size returns about what the link takes.
func (l *Link) Size() int {
	n := indexEntries + int(unsafe.Sizeof(*l)) + len(l.Slug) + len(l.Title) + len(l.Description) + len(l.Metadata) +
		len(l.SuccessURL) + len(l.CancelURL) + len(l.PublicToken)
	return n + len(l.Items)*int(unsafe.Sizeof(LinkItem{}))
}

// Size returns about what the product takes.
func (p *CatalogProduct) Size() int {
	return indexEntries + int(unsafe.Sizeof(*p)) + len(p.ExternalID) + len(p.Name) + len(p.Description) + len(p.ImageURL) +
		len(p.Metadata)
}

// Size returns about what the session takes.
func (s *Session) Size() int {
	return indexEntries + int(unsafe.Sizeof(*s)) + len(s.ID) + len(s.Token) + len(s.Slug) + len(s.TransactionID) + s.Buyer.size()
}
