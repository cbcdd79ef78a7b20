package gateway

import (
	"cmp"
	"fmt"
	"strconv"
)

// resource is what a response of the gateway holds. An empty object decodes
// too: the member that identity names tells a resource from it.
type resource interface{ identity() (member, value string) }

func (t *Transaction) identity() (member, value string)        { return "id", t.ID }
func (t *TransactionSummary) identity() (member, value string) { return "id", t.ID }
func (a *sandboxAnswer) identity() (member, value string)      { return "transaction.id", a.Transaction.ID }
func (t *Transfer) identity() (member, value string)           { return "id", t.ID }
func (c *Customer) identity() (member, value string)           { return "id", c.ID }
func (s *Subscription) identity() (member, value string)       { return "id", s.ID }
func (l *CheckoutLink) identity() (member, value string)       { return "url", l.URL }

func (d *Delivery) identity() (member, value string) {
	return "status", cmp.Or(string(d.Status), d.Code)
}

func (r *Refund) identity() (member, value string) {
	return "amount_refunded", strconv.FormatInt(r.AmountRefunded, 10)
}

func (s *CheckoutSession) identity() (member, value string) {
	return "session_token", s.SessionToken.Reveal()
}

func (s *CheckoutSessionState) identity() (member, value string) {
	return "status", string(s.Status)
}

// whole returns an error where v lacks the member that makes it a resource.
func whole(v any) error {
	r, ok := v.(resource)
	if !ok {
		return nil
	}
	if member, value := r.identity(); value == "" || value == "0" {
		return fmt.Errorf("the response has no %s", member)
	}
	return nil
}

// wholeItems does so for the items of a list.
func wholeItems[T any](items []T) error {
	for i := range items {
		if err := whole(&items[i]); err != nil {
			return fmt.Errorf("item %d of the list: %w", i+1, err)
		}
	}
	return nil
}

// idOf returns what identifies a resource.
func idOf(v any) string {
	if r, ok := v.(resource); ok {
		_, id := r.identity()
		return id
	}
	return ""
}
