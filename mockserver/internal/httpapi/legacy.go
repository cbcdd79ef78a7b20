package httpapi

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
	"github.com/gateway-go/gateway/pix"
)

func (a *API) legacyRoutes() []route {
	return []route{
		{
			Operation: spec.Legacy.ConfigureIntegration, status: 200, legacy: true,
			do: withBody(a.configureIntegration), data: integrationView{}, second: pixIntegrationView{},
		},
		{
			Operation: spec.Legacy.Balance, status: 200, legacy: true,
			do: plainly(a.getBalance), data: balanceView{},
		},
		{
			Operation: spec.Legacy.CreatePixPayment, status: 201, legacy: true,
			do: withBody(a.createLegacyPayment), data: legacyPaymentView{},
		},
		{
			Operation: spec.Legacy.PaymentToken, status: 200,
			do: plainly(a.getPaymentToken), data: tokenView{},
		},
		{
			Operation: spec.Legacy.CreatePaymentToken, status: 200,
			do: retired(withBody(a.createPaymentToken)), data: tokenView{}, refusals: []string{engine.CodeTokenizationRetired},
		},
	}
}

type integrationBody struct {
	WebhookURL    *string `json:"webhookUrl"`
	PixWebhookURL *string `json:"pixWebhookUrl"`
}

// integrationView is the first variant of the response.
type integrationView struct {
	ID            string `json:"id"`
	WebhookURL    string `json:"webhookUrl"`
	PixWebhookURL string `json:"pixWebhookUrl"`
	Status        string `json:"status"`
}

// pixIntegrationView is the second variant.
type pixIntegrationView struct {
	Status  int            `json:"status"`
	Message string         `json:"message"`
	Data    pixIntegration `json:"data"`
}

type pixIntegration struct {
	PixWebhookURL string `json:"pixWebhookUrl"`
}

// configureIntegration returns the second variant of the response if the request
// has only pixWebhookUrl, and the first otherwise.
func (a *API) configureIntegration(rq *request, in *integrationBody) (any, *engine.Refusal) {
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.ConfigureIntegration(d.Env, d.Integration, engine.IntegrationUpdate(*in)), nil
	})
	if refusal != nil {
		return nil, refusal
	}
	if in.WebhookURL == nil && in.PixWebhookURL != nil {
		rq.status = http.StatusCreated
		return pixIntegrationView{http.StatusCreated, "Integration saved", pixIntegration{c.Integration.PixWebhookURL}}, nil
	}
	return integrationView(*c.Integration), nil
}

type balanceView struct {
	Balance  int64  `json:"balance"`
	Currency string `json:"currency"`
}

func (a *API) getBalance(rq *request) (any, *engine.Refusal) {
	v := balanceView{Currency: "BRL"}
	rq.view(func(d *store.Data) { v.Balance = d.Balance })
	return v, nil
}

type legacyPaymentBody struct {
	Payer struct {
		FullName string `json:"fullName"`
		Document string `json:"document"`
		Contact  struct {
			Mail  string `json:"mail"`
			Phone string `json:"phone"`
		} `json:"contact"`
		Address *legacyAddress `json:"address"`
	} `json:"payer"`
	Transaction struct {
		Value          int64  `json:"value"`
		Description    string `json:"description"`
		ExpirationTime int64  `json:"expirationTime"` // seconds
		DueDate        string `json:"dueDate"`
		ExternalID     string `json:"externalId"`
	} `json:"transaction"`
	Splits []legacySplit `json:"splits"`
}

// legacyAddress accepts both spellings of the neighborhood.
type legacyAddress struct {
	ZipCode      string `json:"zipCode"`
	Street       string `json:"street"`
	Number       string `json:"number"`
	City         string `json:"city"`
	State        string `json:"state"`
	Country      string `json:"country"`
	Neighboor    string `json:"neighboor"`
	Neighborhood string `json:"neighborhood"`
}

type legacySplit struct {
	PixKey     string  `json:"pixKey"`
	PixKeyType string  `json:"pixKeyType"`
	Document   string  `json:"document"`
	ExternalID string  `json:"externalId"`
	Percent    float64 `json:"percent"`
	Amount     int64   `json:"amount"`
}

type legacyPaymentView struct {
	TransactionID  string  `json:"transactionId"`
	Status         string  `json:"status"`
	PixQRCode      string  `json:"pixQrCode"` // a PNG image in base64
	PixCode        string  `json:"pixCode"`
	GenerateTime   stamp   `json:"generateTime"`
	ExpirationDate stamp   `json:"expirationDate"`
	PaymentLink    *string `json:"paymentLink"`
}

func (a *API) createLegacyPayment(rq *request, in *legacyPaymentBody) (any, *engine.Refusal) {
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.CreateLegacyPayment(d.Env, newLegacyPayment(in))
	})
	if refusal != nil {
		return nil, refusal
	}
	t := c.Transactions[0]
	picture, err := pngOf(t.QRCode())
	if err != nil {
		return nil, engine.NewRefusal("QR_FAILED", "The QR code image could not be generated.")
	}
	return legacyPaymentView{
		TransactionID:  t.ID,
		Status:         t.LegacyStatus(),
		PixQRCode:      picture,
		PixCode:        t.QRCode(),
		GenerateTime:   stamp(t.CreatedAt),
		ExpirationDate: stamp(t.Pix.ExpirationDate),
	}, nil
}

// qrScale is the number of pixels per module of a QR code image.
const qrScale = 4

func pngOf(text string) (string, error) {
	code, err := pix.Draw(text)
	if err != nil {
		return "", err
	}
	png, err := code.PNG(qrScale)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(png), nil
}

func newLegacyPayment(in *legacyPaymentBody) engine.NewLegacyPayment {
	n := engine.NewLegacyPayment{
		LegacyPayment: engine.LegacyPayment{
			ExternalID:  in.Transaction.ExternalID,
			Description: in.Transaction.Description,
			DueDate:     in.Transaction.DueDate,
		},
		Amount:   in.Transaction.Value,
		Lifetime: time.Duration(in.Transaction.ExpirationTime) * time.Second,
		Buyer: engine.Buyer{
			Name:     in.Payer.FullName,
			Email:    in.Payer.Contact.Mail,
			Phone:    in.Payer.Contact.Phone,
			Document: legacyDocument(in.Payer.Document),
			Address:  in.Payer.Address.toEngine(),
		},
	}
	for _, s := range in.Splits {
		n.Splits = append(n.Splits, engine.LegacySplit(s))
	}
	return n
}

// legacyDocument distinguishes the two kinds of Brazilian documents by length.
func legacyDocument(number string) *engine.Document {
	if number == "" {
		return nil
	}
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(".-/ ", r) {
			return -1
		}
		return r
	}, number)
	if len(digits) == 14 {
		return &engine.Document{Type: "CNPJ", Number: number}
	}
	return &engine.Document{Type: "CPF", Number: number}
}

func (a *legacyAddress) toEngine() *engine.Address {
	if a == nil {
		return nil
	}
	return &engine.Address{
		Street:       a.Street,
		Number:       a.Number,
		Neighborhood: cmp.Or(a.Neighborhood, a.Neighboor),
		City:         a.City,
		State:        a.State,
		ZipCode:      a.ZipCode,
		Country:      cmp.Or(a.Country, "BR"),
	}
}

// tokenView is a card token of the retired tokenization. The interface document
// does not show its members.
type tokenView struct {
	Token    string `json:"token"`
	Brand    string `json:"brand"`
	Last4    string `json:"last4"`
	ExpMonth int    `json:"exp_month"`
	ExpYear  int    `json:"exp_year"`
}

func (a *API) getPaymentToken(rq *request) (any, *engine.Refusal) {
	return a.viewToken(engine.PaymentToken(rq.param)), nil
}

// retired rejects a call after its cutoff, whatever its body.
func retired(do handler) handler {
	return func(rq *request) (any, *problem) {
		if refusal := engine.TokenizationEnded(rq.api.cfg.Now()); refusal != nil {
			return nil, refused(refusal)
		}
		return do(rq)
	}
}

// createPaymentToken accepts any object: the rule has already rejected card data.
func (a *API) createPaymentToken(rq *request, _ *map[string]jsontext.Value) (any, *engine.Refusal) {
	return a.viewToken(engine.PaymentToken(rq.param)), nil
}

func (a *API) viewToken(c *engine.Card) tokenView {
	return tokenView{
		Token: c.Token, Brand: "visa", Last4: c.Last4, ExpMonth: 12, ExpYear: a.cfg.Now().Year() + 3,
	}
}
