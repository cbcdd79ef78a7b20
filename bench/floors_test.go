package bench_test

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// The same calls written by hand: floor A with encoding/json, floor B with JSON
// v2. They are what a careful programmer writes in an afternoon: types with
// every documented field, a status check, a closed body. They don't validate, retry
// or keep unknown members.

type handRequest struct {
	ExternalRef string        `json:"external_ref"`
	Amount      int64         `json:"amount"`
	Currency    string        `json:"currency"`
	Method      string        `json:"method"`
	Buyer       handBuyer     `json:"buyer"`
	Products    []handProduct `json:"products"`
	NotifyURL   string        `json:"notify_url"`
	Metadata    string        `json:"metadata"`
	IPAddress   string        `json:"ip_address"`
}

type handBuyer struct {
	ID        string        `json:"id,omitempty"`
	Name      string        `json:"name"`
	Email     string        `json:"email"`
	Phone     string        `json:"phone"`
	BirthDate string        `json:"birth_date"`
	Document  *handDocument `json:"document"`
	Address   *handAddress  `json:"address"`
}

type handDocument struct {
	Type   string `json:"type"`
	Number string `json:"number"`
}

type handAddress struct {
	Street       string `json:"street"`
	Number       string `json:"number"`
	Complement   string `json:"complement"`
	Neighborhood string `json:"neighborhood"`
	City         string `json:"city"`
	State        string `json:"state"`
	ZipCode      string `json:"zipCode"`
	Country      string `json:"country"`
}

type handProduct struct {
	Name     string `json:"name"`
	Price    int64  `json:"price"`
	Quantity int    `json:"quantity"`
	Tangible bool   `json:"tangible,omitempty"`
	SKU      string `json:"sku,omitempty"`
}

type handTransaction struct {
	ID           string    `json:"id"`
	Amount       int64     `json:"amount"`
	Currency     string    `json:"currency"`
	Method       string    `json:"method"`
	Status       string    `json:"status"`
	ExternalRef  string    `json:"external_ref"`
	Buyer        handBuyer `json:"buyer"`
	Installments int       `json:"installments"`
	Fee          *struct {
		NetAmount    int64 `json:"net_amount"`
		EstimatedFee int64 `json:"estimated_fee"`
	} `json:"fee"`
	Informations []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"informations"`
	PaidAmount     int64      `json:"paid_amount"`
	RefundedAmount int64      `json:"refunded_amount"`
	PaidAt         *time.Time `json:"paid_at"`
	Pix            *struct {
		QRCode         string     `json:"qr_code"`
		ExpirationDate *time.Time `json:"expiration_date"`
		EndToEndID     string     `json:"end_to_end_id"`
		ReceiptURL     string     `json:"receipt_url"`
	} `json:"pix"`
	Voucher *struct {
		Barcode        string     `json:"barcode"`
		DigitableLine  string     `json:"digitable_line"`
		URL            string     `json:"url"`
		ExpirationDate *time.Time `json:"expiration_date"`
		Instructions   string     `json:"instructions"`
		ReceiptURL     string     `json:"receipt_url"`
	} `json:"voucher"`
	Products  []handProduct `json:"products"`
	Metadata  string        `json:"metadata"`
	Traceable bool          `json:"traceable"`
	IPAddress string        `json:"ip_address"`
	Splits    []struct {
		RecipientID         string `json:"recipient_id"`
		Amount              int64  `json:"amount"`
		ChargeProcessingFee bool   `json:"charge_processing_fee"`
	} `json:"splits"`
	NextAction *struct {
		Type               string     `json:"type"`
		ChallengeSessionID string     `json:"challenge_session_id"`
		ClientSecret       string     `json:"client_secret"`
		ExpiresAt          *time.Time `json:"expires_at"`
	} `json:"next_action"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

type handEnvelope[T any] struct {
	Success   bool   `json:"success"`
	RequestID string `json:"requestId"`
	Data      T      `json:"data"`
}

type handPage struct {
	Data       []handTransaction `json:"data"`
	Total      int               `json:"total"`
	NextCursor *string           `json:"next_cursor"`
	PrevCursor *string           `json:"prev_cursor"`
}

// codec is the difference between the floors.
type codec struct {
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

func floorA(n network) (calls, error) {
	return byHand(n, codec{stdjson.Marshal, stdjson.Unmarshal})
}

func floorB(n network) (calls, error) {
	return byHand(n, codec{
		func(v any) ([]byte, error) { return json.Marshal(v) },
		func(b []byte, v any) error { return json.Unmarshal(b, v) },
	})
}

func byHand(n network, c codec) (calls, error) {
	h := hand{client: &http.Client{Transport: n.transport}, base: n.base, codec: c}
	return calls{create: h.create, get: h.get, list: h.list}, nil
}

type hand struct {
	client *http.Client
	base   string
	codec  codec
}

func (h hand) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := h.codec.marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, h.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer sk_test_bench")
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return h.codec.unmarshal(raw, out)
}

func (h hand) create(ctx context.Context) (string, error) {
	in := handRequest{
		ExternalRef: "order-2027-0117-k3x9qa",
		Amount:      15470,
		Currency:    "BRL",
		Method:      "pix",
		Buyer: handBuyer{
			Name: "Maria Oliveira", Email: "maria.oliveira@example.com", Phone: "11987654321", BirthDate: "1990-05-17",
			Document: &handDocument{Type: "CPF", Number: "12345678909"},
			Address: &handAddress{
				Street: "Rua das Laranjeiras", Number: "210", Complement: "apto 31", Neighborhood: "Laranjeiras",
				City: "Rio de Janeiro", State: "RJ", ZipCode: "22240003", Country: "BR",
			},
		},
		Products: []handProduct{
			{Name: "Café em grãos, torra média, 500 g", Price: 4290, Quantity: 2, Tangible: true, SKU: "CAFE-500"},
			{Name: "Filtro de papel nº 103", Price: 890, Quantity: 1, Tangible: true, SKU: "FILTRO-103"},
			{Name: "Oficina de métodos de preparo (online)", Price: 6000, Quantity: 1},
		},
		NotifyURL: "https://shop.example.com/webhooks/gateway/k3x9qa",
		Metadata:  cartMetadata,
		IPAddress: "203.0.113.7",
	}
	var out handEnvelope[handTransaction]
	if err := h.do(ctx, http.MethodPost, "/v2/transactions", &in, &out); err != nil {
		return "", err
	}
	return out.Data.ID, nil
}

func (h hand) get(ctx context.Context) (string, error) {
	var out handEnvelope[handTransaction]
	err := h.do(ctx, http.MethodGet, "/v2/transactions/0198c5a0-3c5e-7f2a-8d11-aaaa00000000", nil, &out)
	return out.Data.ID, err
}

func (h hand) list(ctx context.Context) (n int, err error) {
	cursor := ""
	for range pages {
		path := fmt.Sprintf("/v2/transactions?limit=%d", pageSize)
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		var out handEnvelope[handPage]
		if err := h.do(ctx, http.MethodGet, path, nil, &out); err != nil {
			return n, err
		}
		for i := range out.Data.Data {
			n += min(len(out.Data.Data[i].ID), 1)
		}
		if out.Data.NextCursor == nil {
			return n, nil
		}
		cursor = *out.Data.NextCursor
	}
	return n, errors.New("the list does not end")
}
