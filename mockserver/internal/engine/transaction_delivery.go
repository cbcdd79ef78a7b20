package engine

import "cmp"

// The states of a delivery that have their own rules.
const (
	inTransit = "in_transit"
	delivered = "delivered"
)

// DeliveryUpdate is an update of the tracking. A nil string leaves the member
// unchanged, an empty one clears it.
type DeliveryUpdate struct {
	Code    string
	Status  string // "" leaves it unchanged; the first time it means in_transit
	URL     *string
	Company *string
}

// UpdateDelivery implements row X20.
func UpdateDelivery(env Env, t *Transaction, in DeliveryUpdate) (Change, *Refusal) {
	if t.Status != paid && t.Status != captured {
		return Change{}, NewRefusal(CodeDeliveryState, "A transaction in state "+t.Status+" can't have a delivery.")
	}
	d := Delivery{Status: inTransit}
	if t.Delivery != nil {
		d = *t.Delivery
	}
	if d.Status == delivered && in.Status != "" && in.Status != delivered {
		return Change{}, NewRefusal(CodeDeliveryState, "A delivery in state delivered can't go back to "+in.Status+".")
	}
	d.Code = in.Code
	d.Status = cmp.Or(in.Status, d.Status)
	if in.URL != nil {
		d.URL = *in.URL
	}
	if in.Company != nil {
		d.Company = *in.Company
	}
	d.LastUpdate = env.Now
	return move(env, t, func(t *Transaction) { t.Delivery = &d }), nil
}
