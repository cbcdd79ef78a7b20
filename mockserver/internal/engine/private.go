package engine

// Values of a resource that must not be logged: documents, Pix keys, client
// secrets, card and session tokens. They may also occur in a reference or another
// string that the merchant chose.

// Private returns the values of a transaction that must not be logged.
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

// Private returns the values of a transfer that must not be logged.
func (t *Transfer) Private() []string { return []string{t.PixKey} }

// Private returns the values of a subscription that must not be logged.
func (s *Subscription) Private() []string {
	list := s.Customer.private()
	if s.Card != nil {
		list = append(list, s.Card.Token)
	}
	return list
}

// Private returns the values of a customer that must not be logged.
func (c *Customer) Private() []string { return c.Buyer.private() }

// Private returns the values of a session that must not be logged.
func (s *Session) Private() []string { return append(s.Buyer.private(), s.Token) }

func (b *Buyer) private() []string {
	if b == nil || b.Document == nil {
		return nil
	}
	return []string{b.Document.Number}
}
