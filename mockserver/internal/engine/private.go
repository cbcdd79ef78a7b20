package engine

// What a log may not show of a resource: documents, Pix keys, card and session
// tokens. Some of it may turn up in a reference or another text that the merchant
// chose.

// Private returns what must not be shown of a transaction.
func (t *Transaction) Private() []string {
	list := t.Buyer.private()
	if t.Card != nil {
		list = append(list, t.Card.Token)
	}
	if t.NextAction != nil {
		list = append(list, t.NextAction.ClientSecret)
	}
	return list
}

// Private returns what must not be shown of a transfer.
func (t *Transfer) Private() []string { return []string{t.PixKey} }

// Private returns what must not be shown of a subscription.
func (s *Subscription) Private() []string {
	list := s.Customer.private()
	if s.Card != nil {
		list = append(list, s.Card.Token)
	}
	return list
}

// Private returns what must not be shown of a customer.
func (c *Customer) Private() []string { return c.Buyer.private() }

// Private returns what must not be shown of a session.
func (s *Session) Private() []string { return append(s.Buyer.private(), s.Token) }

func (b *Buyer) private() []string {
	if b == nil || b.Document == nil {
		return nil
	}
	return []string{b.Document.Number}
}
