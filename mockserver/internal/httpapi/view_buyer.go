package httpapi

import "github.com/gateway-go/gateway/mockserver/internal/engine"

type buyerView struct {
	ID        string        `json:"id"`
	Name      *string       `json:"name"`
	Email     *string       `json:"email"`
	Phone     *string       `json:"phone"`
	BirthDate *string       `json:"birth_date"`
	Document  *documentView `json:"document"`
	Address   *addressView  `json:"address"`
}

type documentView struct {
	Type   string `json:"type"`
	Number string `json:"number"`
}

type addressView struct {
	Street       string  `json:"street"`
	Number       *string `json:"number"`
	Complement   *string `json:"complement"`
	Neighborhood *string `json:"neighborhood"`
	City         string  `json:"city"`
	State        *string `json:"state"`
	ZipCode      *string `json:"zipCode"`
	Country      string  `json:"country"`
}

func viewBuyer(b *engine.Buyer) buyerView {
	return buyerView{
		ID:        b.ID,
		Name:      nullable(&b.Name),
		Email:     nullable(&b.Email),
		Phone:     nullable(&b.Phone),
		BirthDate: nullable(&b.BirthDate),
		Document:  (*documentView)(b.Document),
		Address:   viewAddress(b.Address),
	}
}

func viewAddress(a *engine.Address) *addressView {
	if a == nil {
		return nil
	}
	return &addressView{
		Street:       a.Street,
		Number:       nullable(&a.Number),
		Complement:   nullable(&a.Complement),
		Neighborhood: nullable(&a.Neighborhood),
		City:         a.City,
		State:        nullable(&a.State),
		ZipCode:      nullable(&a.ZipCode),
		Country:      a.Country,
	}
}
