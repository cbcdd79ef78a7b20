package gateway

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/gateway-go/gateway/internal/rules"
	"github.com/gateway-go/gateway/internal/wire"
)

// TransactionListParams is the query of GET /v2/transactions. Where several
// values are given for one member, a transaction needs one of them.
type TransactionListParams struct {
	Cursor    string    `url:"cursor,omitempty"` // of another page; see [Page.NextCursor]
	Limit     int       `url:"limit,omitempty"`  // 1 to 100; 20 where it is not sent
	Direction Direction `url:"direction,omitempty"`

	ID             []string            `url:"id,comma,omitempty"`
	Methods        []Method            `url:"paymentMethods,comma,omitempty"`
	Currencies     []Currency          `url:"currency,comma,omitempty"`
	Statuses       []TransactionStatus `url:"status,comma,omitempty"`
	DeliveryStatus []DeliveryStatus    `url:"deliveryStatus,comma,omitempty"`
	Installments   []int               `url:"installments,comma,omitempty"`
	Name           string              `url:"name,omitempty"`           // of the buyer
	Email          string              `url:"email,omitempty"`          // of the buyer
	DocumentNumber string              `url:"documentNumber,omitempty"` // of the buyer
	Phone          string              `url:"phone,omitempty"`          // of the buyer
	Products       []string            `url:"products,comma,omitempty"` // names
	Traceable      Opt[bool]           `url:"traceable,omitempty"`
	From           time.Time           `url:"dateFrom,omitempty" layout:"2006-01-02T15:04:05.999Z07:00"` // created at or after
	To             time.Time           `url:"dateTo,omitempty" layout:"2006-01-02T15:04:05.999Z07:00"`   // created at or before
}

// Validate checks p as the gateway would; see [ValidationError].
func (p TransactionListParams) Validate() error { return validateQuery(p, rules.TransactionList) }

// TransactionSummary is a transaction in a list. The gateway writes list items
// in two shapes, one like a read transaction, one with the payment in an object
// of its own and other names for the products; both are read into this one.
// What a shape does not have is at its zero value: read the transaction itself
// where that matters. Amounts are in cents.
type TransactionSummary struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount,omitzero"`
	Currency       Currency          `json:"currency,omitzero"`
	Country        Country           `json:"country,omitzero"` // of the payment
	Method         Method            `json:"method,omitzero"`
	Status         TransactionStatus `json:"status"`
	ExternalRef    string            `json:"external_ref,omitzero"` // nullable
	Buyer          Buyer             `json:"buyer"`                 // often only Name and Email
	Fee            *Fee              `json:"fee,omitzero"`
	Installments   int               `json:"installments,omitzero"` // nullable
	Informations   []Information     `json:"informations,omitzero"`
	BasePrice      int64             `json:"base_price,omitzero"` // before interest and fees
	PaidAmount     int64             `json:"paid_amount"`
	RefundedAmount int64             `json:"refunded_amount"`
	PaidAt         Timestamp         `json:"paid_at"` // nullable
	Pix            *PixDetails       `json:"pix,omitzero"`
	Voucher        *VoucherDetails   `json:"voucher,omitzero"`
	Products       []ProductLine     `json:"products"`
	Metadata       Metadata          `json:"metadata,omitzero"`
	Traceable      bool              `json:"traceable"`
	IPAddress      string            `json:"ip_address,omitzero"`
	Splits         []Split           `json:"splits,omitzero"`
	NextAction     *NextAction       `json:"next_action,omitzero"`
	AttemptsCount  int               `json:"attempts_count,omitzero"`
	CreatedAt      Timestamp         `json:"created_at"`
	UpdatedAt      Timestamp         `json:"updated_at"`

	// Extra holds the members that this version does not know.
	Extra map[string]json.RawMessage `json:",embed"`

	payment *summaryPayment // as it came
	titled  bool            // products came as title and unit_price
}

// Settled reports whether the money was paid; see [TransactionStatus.Settled].
func (t *TransactionSummary) Settled() bool { return t.Status.Settled() }

func (t *TransactionSummary) listed() (id, reference string, created time.Time) {
	return t.ID, t.ExternalRef, t.CreatedAt.Time
}

// plainSummary is a TransactionSummary without methods.
type plainSummary TransactionSummary

// summaryItem is a list item on the wire, in either shape.
type summaryItem struct {
	Summary  *plainSummary    `json:",embed"`
	Payment  *summaryPayment  `json:"payment,omitzero"`
	Products []summaryProduct `json:"products"` // stands in for the one of Summary
}

type summaryPayment struct {
	Method       Method          `json:"method"`
	Currency     Currency        `json:"currency"`
	Country      Country         `json:"country"`
	ExternalRef  string          `json:"external_ref"`
	Amount       int64           `json:"amount"`
	BasePrice    int64           `json:"base_price"`
	Installments int             `json:"installments,omitzero"`
	Fee          json.RawMessage `json:"fee,omitzero"` // null, a number or a Fee
	Pix          *summaryPix     `json:"pix"`

	Extra map[string]json.RawMessage `json:",embed"`
}

type summaryPix struct {
	QRCode   string `json:"qrcode"`
	EndToEnd string `json:"endToEnd"`

	Extra map[string]json.RawMessage `json:",embed"`
}

type summaryProduct struct {
	Name      string `json:"name,omitzero"`
	Title     string `json:"title,omitzero"`
	Price     int64  `json:"price,omitzero"`
	UnitPrice int64  `json:"unit_price,omitzero"`
	Quantity  int    `json:"quantity"`

	Extra map[string]json.RawMessage `json:",embed"`
}

// UnmarshalJSON reads either shape.
func (t *TransactionSummary) UnmarshalJSON(b []byte) error {
	var item summaryItem
	err := wire.DecodeFresh(b, &item, func() {
		*t = TransactionSummary{}
		item = summaryItem{Summary: (*plainSummary)(t)}
	})
	if err != nil {
		return err
	}
	if item.Products != nil {
		t.Products = make([]ProductLine, len(item.Products))
	}
	for i, p := range item.Products {
		t.titled = t.titled || p.Title != "" || p.UnitPrice != 0
		t.Products[i] = ProductLine{
			Name: cmp.Or(p.Name, p.Title), Price: cmp.Or(p.Price, p.UnitPrice), Quantity: p.Quantity, Extra: p.Extra,
		}
	}
	if item.Payment != nil {
		t.flatten(item.Payment)
	}
	return nil
}

// flatten takes over what the item itself does not say.
func (t *TransactionSummary) flatten(p *summaryPayment) {
	t.payment = p
	t.Method = cmp.Or(t.Method, p.Method)
	t.Currency = cmp.Or(t.Currency, p.Currency)
	t.Country = cmp.Or(t.Country, p.Country)
	t.ExternalRef = cmp.Or(t.ExternalRef, p.ExternalRef)
	t.Amount = cmp.Or(t.Amount, p.Amount)
	t.BasePrice = cmp.Or(t.BasePrice, p.BasePrice)
	t.Installments = cmp.Or(t.Installments, p.Installments)
	if t.Fee == nil && len(p.Fee) > 0 && p.Fee[0] == '{' {
		_ = wire.Decode(p.Fee, &t.Fee) // what is no fee stays in the payment
	}
	if t.Pix == nil && p.Pix != nil {
		t.Pix = &PixDetails{QRCode: p.Pix.QRCode, EndToEndID: p.Pix.EndToEnd}
	}
}

// MarshalJSON writes the item in the shape it came in.
func (t TransactionSummary) MarshalJSON() ([]byte, error) {
	if t.payment != nil {
		t.unflatten(t.payment)
	}
	item := summaryItem{Summary: (*plainSummary)(&t), Payment: t.payment}
	if t.Products != nil {
		item.Products = make([]summaryProduct, 0, len(t.Products))
	}
	for _, p := range t.Products {
		product := summaryProduct{Quantity: p.Quantity, Extra: p.Extra}
		if t.titled {
			product.Title, product.UnitPrice = p.Name, p.Price
		} else {
			product.Name, product.Price = p.Name, p.Price
		}
		item.Products = append(item.Products, product)
	}
	return wire.Marshal(&item)
}

// unflatten drops what the payment says already.
func (t *TransactionSummary) unflatten(p *summaryPayment) {
	drop(&t.Method, p.Method)
	drop(&t.Currency, p.Currency)
	drop(&t.Country, p.Country)
	drop(&t.ExternalRef, p.ExternalRef)
	drop(&t.Amount, p.Amount)
	drop(&t.BasePrice, p.BasePrice)
	drop(&t.Installments, p.Installments)
	t.Fee, t.Pix = nil, nil
}

func drop[T comparable](v *T, said T) {
	if *v == said {
		var none T
		*v = none
	}
}
