package engine

// customerActive is the only state of a customer; the list can filter by it.
const customerActive = "active"

// CreateCustomer creates a customer with the members that the request sets.
// first is the customer that already has in.ExternalRef, or nil; e-mails and
// documents may repeat.
func CreateCustomer(env Env, first *Customer, in Customer) (Change, *Refusal) {
	if first != nil {
		return Change{}, Duplicate("customer", "/v2/customers/"+first.ID)
	}
	in.ID = env.IDs.UUID(env.Now)
	in.Status = customerActive
	in.CreatedAt, in.UpdatedAt = env.Now, env.Now
	return Change{Customers: []*Customer{&in}}, nil
}
