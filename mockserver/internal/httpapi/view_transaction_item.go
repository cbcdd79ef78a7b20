package httpapi

import (
	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// transactionItem is a transaction in a list of the live dialect. The document
// dialect lists transactions as a read returns them.
type transactionItem struct {
	ID            string            `json:"id"`
	Buyer         itemBuyer         `json:"buyer"` // often only name and email
	Payment       itemPayment       `json:"payment"`
	Status        string            `json:"status"`
	Products      []itemProductView `json:"products"`
	PaidAt        stamp             `json:"paid_at"`
	CreatedAt     stamp             `json:"created_at"`
	UpdatedAt     stamp             `json:"updated_at"`
	AttemptsCount int               `json:"attempts_count"`
}

type itemBuyer struct {
	Name  *string `json:"name"`
	Email *string `json:"email"`
}

type itemPayment struct {
	Method       string   `json:"method"`
	Currency     string   `json:"currency"`
	Country      string   `json:"country"`
	ExternalRef  string   `json:"external_ref,omitzero"`
	Amount       int64    `json:"amount"`
	BasePrice    int64    `json:"base_price"`
	Installments int      `json:"installments,omitzero"`
	Fee          feeView  `json:"fee"` // never a number
	Pix          *itemPix `json:"pix"`
}

type itemPix struct {
	QRCode   string `json:"qrcode,omitzero"`
	EndToEnd string `json:"endToEnd,omitzero"`
}

type itemProductView struct {
	Title     string `json:"title"`
	Quantity  int    `json:"quantity"`
	UnitPrice int64  `json:"unit_price"`
}

func viewTransactionItem(t *engine.Transaction) transactionItem {
	v := transactionItem{
		ID:    t.ID,
		Buyer: itemBuyer{Name: nullable(&t.Buyer.Name), Email: nullable(&t.Buyer.Email)},
		Payment: itemPayment{
			Method:       t.Method,
			Currency:     t.Currency,
			Country:      string(gateway.Brazil),
			ExternalRef:  t.ExternalRef,
			Amount:       t.Reported(),
			BasePrice:    t.Amount,
			Installments: t.Installments,
			Fee:          viewFee(t),
		},
		Status:        t.Status,
		Products:      make([]itemProductView, len(t.Products)),
		PaidAt:        stamp(t.PaidAt),
		CreatedAt:     stamp(t.CreatedAt),
		UpdatedAt:     stamp(t.UpdatedAt),
		AttemptsCount: 1,
	}
	if a := t.Buyer.Address; a != nil {
		v.Payment.Country = a.Country
	}
	if t.Pix != nil {
		v.Payment.Pix = &itemPix{QRCode: t.QRCode(), EndToEnd: t.Pix.EndToEndID}
	}
	for i, p := range t.Products {
		v.Products[i] = itemProductView{Title: p.Name, Quantity: p.Quantity, UnitPrice: p.Price}
	}
	return v
}
