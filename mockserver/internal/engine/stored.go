package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/stored"
)

// storedRules are the rules of the records' members that are not those of package stored.
// They admit whatever a request or a transition may store, in both dialects.
var storedRules = sync.OnceValue(func() stored.Rules {
	return stored.Rules{
		"Row.Seq": atLeastOne, "Row.Rev": atLeastOne,

		"Change.Balance": stored.Between(-stored.MaxNumber, stored.MaxNumber),

		"Transaction.ID":        stored.Required,
		"Transaction.Currency":  stored.In(spec.Currencies, false),
		"Transaction.Method":    stored.In(spec.Methods, false),
		"Transaction.Buyer":     stored.Required,
		"Transaction.Status":    stored.In(spec.LiveTransactionStatuses, false),
		"Transaction.CreatedAt": stored.Required,
		"Transaction.UpdatedAt": stored.Required,
		"Delivery.Status":       stored.In(spec.DeliveryStatuses, true),
		"Product.Quantity":      stored.Between(0, spec.MaxQuantity),

		"Customer.Status":    stored.In(spec.CustomerStatuses, false),
		"Customer.CreatedAt": stored.Required,

		"Transfer.ID":        stored.Required,
		"Transfer.Status":    stored.In(spec.TransferStatuses, false),
		"Transfer.CreatedAt": stored.Required,

		"Subscription.ID":               stored.Required,
		"Subscription.Customer":         stored.Required,
		"Subscription.Status":           stored.In(spec.SubscriptionStatuses, false),
		"Subscription.PaymentMethod":    stored.In(spec.SubscriptionMethods, false),
		"Subscription.Currency":         stored.In(spec.BillingCurrencies, false),
		"Subscription.Interval":         stored.In(spec.Intervals, false),
		"Subscription.IntervalCount":    stored.Between(1, spec.MaxIntervalCount),
		"Subscription.BillingDay":       stored.Between(0, spec.MaxBillingDay),
		"Subscription.FailurePolicy":    stored.In(spec.FailurePolicies, false),
		"Subscription.RetryOffsetsDays": stored.All(stored.Required, stored.Each(stored.Between(0, spec.MaxRetryOffset))),
		"Subscription.Metadata":         object,
		"Subscription.Cycle":            stored.Between(0, maxCycles),
		"Subscription.CreatedAt":        stored.Required,
		"Authorization.Status":          stored.In(spec.AuthorizationStatuses, false),

		"Link.Slug":               stored.Required,
		"Link.Status":             stored.In(spec.LinkStatuses, false),
		"Link.Currency":           stored.In(spec.Currencies, false),
		"Link.Metadata":           object,
		"LinkItem.Quantity":       stored.Between(0, spec.MaxQuantity),
		"CatalogProduct.Type":     stored.In(spec.ItemTypes, false),
		"CatalogProduct.Price":    stored.Between(0, spec.MaxAmount),
		"CatalogProduct.Currency": stored.In(spec.Currencies, true),
		"CatalogProduct.Metadata": object,

		"Session.ID":     stored.Required,
		"Session.Token":  stored.Required,
		"Session.Status": stored.In(spec.SessionStatuses, false),
		"Session.Method": stored.In(spec.Methods, true),
		"Session.Buyer":  stored.Required,

		"Response.Key":    stored.Required,
		"Response.Status": stored.Between(200, 599),
	}
})

// maxCycles is more than there are days until the last year of the clock.
const maxCycles = 4_000_000

func atLeastOne(v reflect.Value) string {
	if v.Uint() == 0 {
		return "must be at least 1"
	}
	return ""
}

// object is the rule of a JSON object that is stored as text.
func object(v reflect.Value) string {
	text := v.String()
	if text != "" && (!strings.HasPrefix(text, "{") || !json.Valid([]byte(text))) {
		return "must be a JSON object"
	}
	return ""
}

// Check returns an error that names the first member of a stored change that the gateway
// does not create.
func (c Change) Check() error {
	records := c
	records.Events = nil // their resources are among the others
	if err := storedRules().Check("", records); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "."))
	}
	for i, t := range c.Transactions {
		if problem := t.inconsistent(); problem != "" {
			return fmt.Errorf("Transactions[%d].%s", i, problem)
		}
	}
	for i, s := range c.Subscriptions {
		if problem := s.inconsistent(); problem != "" {
			return fmt.Errorf("Subscriptions[%d].%s", i, problem)
		}
	}
	return nil
}

// inconsistent returns which members contradict each other, or "".
func (t *Transaction) inconsistent() string {
	switch {
	case t.Method == pix && t.Pix == nil:
		return "Pix is missing for the Method pix"
	case t.Method == voucher && t.Voucher == nil:
		return "Voucher is missing for the Method voucher"
	case t.Method == card && t.Card == nil:
		return "Card is missing for the Method credit_card"
	case t.RefundedAmount > max(t.PaidAmount, t.Amount):
		return "RefundedAmount is more than the Amount and the PaidAmount"
	}
	return ""
}

func (s *Subscription) inconsistent() string {
	switch {
	case s.PaymentMethod == card && s.Card == nil:
		return "Card is missing for the PaymentMethod credit_card"
	case s.PaymentMethod == pixAutomatic && s.Card != nil:
		return "Card is set for the PaymentMethod pix_automatic"
	case s.PaymentMethod == pixAutomatic && s.Authorization == nil:
		return "Authorization is missing for the PaymentMethod pix_automatic"
	case s.DebitCanceled && s.Authorization == nil:
		return "DebitCanceled is set, but there is no Authorization"
	case s.Cycle > 0 && s.Anchor.IsZero():
		return "Anchor is missing: the Cycle is not 0"
	}
	return ""
}

// maxBehind is how many periods may have ended without a renewal: those that an advance
// makes up for.
const maxBehind = 100_000

// Behind returns an error if the timers of s would have to renew it too often until now.
func (s *Subscription) Behind(now time.Time) error {
	if s.Cycle == 0 && s.Status != subTrialing {
		return nil
	}
	from := s.boundary(s.Cycle)
	if s.Cycle == 0 {
		from = s.TrialEnd
	}
	if s.CurrentPeriodEnd.Before(from) {
		from = s.CurrentPeriodEnd
	}
	if periods := now.Sub(from) / (24 * time.Hour); periods > maxBehind {
		return fmt.Errorf("the period of Anchor, Cycle, TrialEnd and CurrentPeriodEnd ended %d days before the clock's time", periods)
	}
	return nil
}
