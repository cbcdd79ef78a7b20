package httpapi

import (
	"cmp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// These functions convert the parts that several requests share to engine types
// and apply the interface's defaults.

func buyerFrom(p gateway.BuyerParams) *engine.Buyer {
	return &engine.Buyer{
		Name:      p.Name,
		Email:     p.Email,
		Phone:     p.Phone,
		BirthDate: p.BirthDate,
		Document:  documentFrom(p.Document),
		Address:   addressFrom(p.Address),
	}
}

func documentFrom(d *gateway.Document) *engine.Document {
	if d == nil {
		return nil
	}
	return &engine.Document{Type: string(d.Type), Number: d.Number}
}

func addressFrom(a *gateway.Address) *engine.Address {
	if a == nil {
		return nil
	}
	return &engine.Address{
		Street:       a.Street,
		Number:       a.Number,
		Complement:   a.Complement,
		Neighborhood: a.Neighborhood,
		City:         a.City,
		State:        a.State,
		ZipCode:      a.ZipCode,
		Country:      string(cmp.Or(a.Country, gateway.Brazil)),
	}
}

func informationsFrom(informations []gateway.Information) []engine.Information {
	list := make([]engine.Information, len(informations))
	for i, info := range informations {
		list[i] = engine.Information(info)
	}
	return list
}

func productsFrom(products []gateway.Product) []engine.Product {
	list := make([]engine.Product, len(products))
	for i, p := range products {
		list[i] = engine.Product{
			Name:     p.Name,
			Price:    p.Price,
			Quantity: cmp.Or(p.Quantity, 1),
			Tangible: p.Tangible,
			SKU:      p.SKU,
		}
	}
	return list
}
