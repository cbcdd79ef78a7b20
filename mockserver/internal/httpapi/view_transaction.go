package httpapi

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// The views of a transaction. Every key is always present. Nil pointers are
// null; the others point into the resource, which is immutable.

type transactionView struct {
	ID             string            `json:"id"`
	Amount         int64             `json:"amount"`                             // in the live dialect what the gateway settles, which may differ from base_price
	BasePrice      int64             `json:"base_price,omitzero" dialect:"live"` // what the buyer is charged; live dialect only
	Currency       string            `json:"currency"`
	Method         string            `json:"method"`
	Status         string            `json:"status"`
	ExternalRef    *string           `json:"external_ref"`
	Buyer          buyerView         `json:"buyer"`
	Fee            feeView           `json:"fee"`
	Installments   *int              `json:"installments"`
	Informations   []informationView `json:"informations"`
	PaidAmount     int64             `json:"paid_amount"`
	RefundedAmount int64             `json:"refunded_amount"`
	PaidAt         stamp             `json:"paid_at"`
	Pix            *pixView          `json:"pix"`
	Voucher        *voucherView      `json:"voucher"`
	Products       []productView     `json:"products"`
	Metadata       any               `json:"metadata"` // a string or an object of strings
	Traceable      bool              `json:"traceable"`
	IPAddress      *string           `json:"ip_address"`
	Splits         []struct{}        `json:"splits"` // always empty: this interface can't create splits
	NextAction     *nextActionView   `json:"next_action"`
	CreatedAt      stamp             `json:"created_at"`
	UpdatedAt      stamp             `json:"updated_at"`
}

type feeView struct {
	NetAmount    int64 `json:"net_amount"`
	EstimatedFee int64 `json:"estimated_fee"`
}

type informationView struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type pixView struct {
	QRCode         *string `json:"qr_code"` // null for a Pix Automatico debit
	ExpirationDate stamp   `json:"expiration_date"`
	EndToEndID     *string `json:"end_to_end_id"`
	ReceiptURL     *string `json:"receipt_url"`
}

type voucherView struct {
	Barcode        *string `json:"barcode"`
	DigitableLine  *string `json:"digitable_line"`
	URL            string  `json:"url"`
	ExpirationDate stamp   `json:"expiration_date"`
	Instructions   string  `json:"instructions"`
	ReceiptURL     *string `json:"receipt_url"`
}

type productView struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"`
	Quantity int    `json:"quantity"`
}

type nextActionView struct {
	Type               string `json:"type"`
	ChallengeSessionID string `json:"challenge_session_id"`
	ClientSecret       string `json:"client_secret"`
	ExpiresAt          stamp  `json:"expires_at"`
}

func (a *API) viewTransaction(t *engine.Transaction) *transactionView {
	v := &transactionView{
		ID:             t.ID,
		Amount:         t.Reported(),
		Currency:       t.Currency,
		Method:         t.Method,
		Status:         t.Status,
		ExternalRef:    nullable(&t.ExternalRef),
		Buyer:          viewBuyer(t.Buyer),
		Fee:            viewFee(t),
		Installments:   viewInstallments(t),
		Informations:   make([]informationView, len(t.Informations)),
		PaidAmount:     t.PaidAmount,
		RefundedAmount: t.RefundedAmount,
		PaidAt:         stamp(t.PaidAt),
		Pix:            viewPix(t),
		Voucher:        viewVoucher(t),
		Products:       make([]productView, len(t.Products)),
		Metadata:       a.viewMetadata(t.Metadata),
		Traceable:      t.Traceable,
		IPAddress:      nullable(&t.IPAddress),
		NextAction:     viewNextAction(t.NextAction),
		CreatedAt:      stamp(t.CreatedAt),
		UpdatedAt:      stamp(t.UpdatedAt),
	}
	if a.cfg.Dialect.Live(spec.BasePrice) {
		v.BasePrice = t.Amount
	}
	for i, info := range t.Informations {
		v.Informations[i] = informationView(info)
	}
	for i, p := range t.Products {
		v.Products[i] = productView{Name: p.Name, Price: p.Price, Quantity: p.Quantity}
	}
	return v
}

func viewFee(t *engine.Transaction) feeView {
	return feeView{NetAmount: t.Amount - t.FeeAmount, EstimatedFee: t.FeeAmount}
}

// viewInstallments is null only if the live dialect leaves them unset.
func viewInstallments(t *engine.Transaction) *int {
	if t.Installments == 0 {
		return nil
	}
	return &t.Installments
}

func viewPix(t *engine.Transaction) *pixView {
	if t.Pix == nil {
		return nil
	}
	v := &pixView{ExpirationDate: stamp(t.Pix.ExpirationDate), EndToEndID: nullable(&t.Pix.EndToEndID)}
	if code := t.QRCode(); code != "" {
		v.QRCode = &code
	}
	if receipt := t.ReceiptURL(); receipt != "" {
		v.ReceiptURL = &receipt
	}
	return v
}

func viewVoucher(t *engine.Transaction) *voucherView {
	if t.Voucher == nil {
		return nil
	}
	receipt := t.ReceiptURL()
	return &voucherView{
		Barcode:        nullable(&t.Voucher.Barcode),
		DigitableLine:  nullable(&t.Voucher.DigitableLine),
		URL:            t.VoucherURL(),
		ExpirationDate: stamp(t.Voucher.ExpirationDate),
		Instructions:   engine.VoucherInstructions,
		ReceiptURL:     nullable(&receipt),
	}
}

func viewNextAction(n *engine.NextAction) *nextActionView {
	if n == nil {
		return nil
	}
	return &nextActionView{
		Type:               "three_ds_challenge",
		ChallengeSessionID: n.ChallengeSessionID,
		ClientSecret:       n.ClientSecret,
		ExpiresAt:          stamp(n.ExpiresAt),
	}
}

// viewMetadata returns the string as it was sent; the live dialect turns it
// into an object of strings.
func (a *API) viewMetadata(text string) any {
	switch {
	case text == "":
		return nil
	case a.cfg.Dialect.Live(spec.TransactionMetadata):
		return metadataObject(text)
	default:
		return text
	}
}

// metadataObject reads the members of a JSON object as strings, or those of a
// string like a=1&b=2; any other string becomes the member "metadata".
func metadataObject(text string) map[string]string {
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return metadataPairs(text)
	}
	object := make(map[string]string, len(members))
	for name, raw := range members {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		object[name] = s
	}
	return object
}

func metadataPairs(text string) map[string]string {
	whole := map[string]string{"metadata": text}
	object := map[string]string{}
	for pair := range strings.SplitSeq(text, "&") {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return whole
		}
		object[name] = value
	}
	return object
}
