package engine

// CustomerInput is what a customer is made of.
type CustomerInput struct {
	Name        string
	Email       string
	Phone       string
	Document    *Document
	Address     *Address
	ExternalRef string // "" is none
	IPAddress   string
}

// customerActive is the only state a customer has; the list filters by it.
const customerActive = "active"

// CreateCustomer makes a customer. first is the one that has in.ExternalRef
// already, or nil; e-mails and documents may repeat.
func CreateCustomer(env Env, first *Customer, in CustomerInput) (Change, *Refusal) {
	if first != nil {
		return Change{}, Duplicate("customer", "/v2/customers/"+first.ID)
	}
	return Change{Customers: []*Customer{{
		Buyer: Buyer{
			ID:       env.IDs.UUID(env.Now),
			Name:     in.Name,
			Email:    in.Email,
			Phone:    in.Phone,
			Document: in.Document,
			Address:  in.Address,
		},
		ExternalRef: in.ExternalRef,
		Status:      customerActive,
		IPAddress:   in.IPAddress,
		CreatedAt:   env.Now,
		UpdatedAt:   env.Now,
	}}}, nil
}
