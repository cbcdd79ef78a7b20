package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// The views of a checkout link and of a visit to it. Every key is always
// present.

type sessionView struct {
	Link         linkView   `json:"link"`
	Items        []itemView `json:"items"`
	SessionToken string     `json:"session_token"`
	ExpiresAt    stamp      `json:"expires_at"`
	Resumed      bool       `json:"resumed"`
}

type linkView struct {
	ID             int64          `json:"id"`
	Slug           string         `json:"slug"`
	Status         string         `json:"status"`
	Title          *string        `json:"title"`
	Description    *string        `json:"description"`
	Currency       string         `json:"currency"`
	Amount         int64          `json:"amount"`
	ExpiresAt      stamp          `json:"expires_at"`
	MaxUses        *int           `json:"max_uses"`
	UsedCount      int            `json:"used_count"`
	SuccessURL     *string        `json:"success_url"`
	CancelURL      *string        `json:"cancel_url"`
	PaymentMethods []string       `json:"payment_methods"`
	Metadata       jsontext.Value `json:"metadata"`
	PublicToken    string         `json:"public_token"`
}

type itemView struct {
	ID           int64          `json:"id"`
	ProductID    int64          `json:"product_id"`
	Name         string         `json:"name"`
	Description  *string        `json:"description"`
	Quantity     int            `json:"quantity"`
	Currency     string         `json:"currency"`
	Type         string         `json:"type"`
	Price        int64          `json:"price"`
	ComparePrice *int64         `json:"compare_price"`
	Metadata     jsontext.Value `json:"metadata"`
	ImageURL     *string        `json:"image_url"`
}

// sessionState is the response to a session's update.
type sessionState struct {
	ExpiresAt  stamp   `json:"expires_at"`
	Status     string  `json:"status"`
	UpdatedAt  stamp   `json:"updated_at"`
	Selected   *string `json:"selected_payment_method"`
	SelectedAt stamp   `json:"selected_payment_method_at"`
}

func viewSession(l *engine.Link, s *engine.Session, products engine.Catalog) sessionView {
	return sessionView{
		Link:         viewLink(l, products),
		Items:        viewItems(l, products),
		SessionToken: s.Token,
		ExpiresAt:    stamp(s.ExpiresAt),
	}
}

func viewLink(l *engine.Link, products engine.Catalog) linkView {
	v := linkView{
		ID:             l.ID,
		Slug:           l.Slug,
		Status:         l.Status,
		Title:          nullable(&l.Title),
		Description:    nullable(&l.Description),
		Currency:       l.Currency,
		Amount:         l.Total(products),
		ExpiresAt:      stamp(l.ExpiresAt),
		UsedCount:      l.UsedCount,
		SuccessURL:     nullable(&l.SuccessURL),
		CancelURL:      nullable(&l.CancelURL),
		PaymentMethods: l.PaymentMethods,
		Metadata:       viewObject(l.Metadata),
		PublicToken:    l.PublicToken,
	}
	if l.MaxUses > 0 {
		v.MaxUses = &l.MaxUses
	}
	return v
}

func viewItems(l *engine.Link, products engine.Catalog) []itemView {
	items := make([]itemView, len(l.Items))
	for i, item := range l.Items {
		p := products(item.ProductID)
		items[i] = itemView{
			ID:          item.ID,
			ProductID:   p.ID,
			Name:        p.Name,
			Description: nullable(&p.Description),
			Quantity:    item.Quantity,
			Currency:    l.CurrencyOf(p),
			Type:        p.Type,
			Price:       p.Price,
			Metadata:    viewObject(p.Metadata),
			ImageURL:    nullable(&p.ImageURL),
		}
		if p.ComparePrice > 0 {
			items[i].ComparePrice = &p.ComparePrice
		}
	}
	return items
}
