package httpapi

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (a *API) transferRoutes() []route {
	transfers := listed[engine.Transfer, transferView]{
		table: func(d *store.Data) *store.Table[engine.Transfer] { return &d.Transfers },
		query: transferQuery,
		view:  a.viewTransfer,
	}
	return []route{
		{
			Operation: spec.Transfers.Create, status: 201,
			do: withBody(a.createTransfer), data: transferView{}, refusals: []string{engine.CodeDuplicateReference},
		},
		{
			Operation: spec.Transfers.List, status: 200,
			do: transfers.byCursor, data: transferView{},
		},
		{
			Operation: spec.Transfers.Get, status: 200,
			do: transfers.byID("transfer"), data: transferView{}, refusals: []string{engine.CodeNotFound},
		},
		{
			Operation: spec.Transfers.Cancel, status: 200,
			do: withBody(a.cancelTransfer), data: transferView{}, refusals: []string{engine.CodeNotFound, engine.CodeInvalidState}, optional: true,
		},
	}
}

// createTransfer returns 201 with the new transfer, or, in the live dialect,
// 200 with the first one of the same reference.
func (a *API) createTransfer(rq *request, in *gateway.TransferParams) (any, *engine.Refusal) {
	var first *engine.Transfer
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		first = d.Transfers.ByRef(in.ExternalRef)
		return engine.CreateTransfer(d.Env, first, engine.Transfer{
			Amount:      in.Amount,
			PixKey:      string(in.PixKeyValue),
			PixKeyType:  string(in.PixKeyType),
			Description: in.Description,
			ExternalRef: in.ExternalRef,
			Origin:      in.Origin,
			NotifyURL:   in.NotifyURL,
		})
	})
	switch {
	case refusal != nil:
		return nil, refusal
	case len(c.Transfers) == 0:
		rq.status = http.StatusOK
		return a.viewTransfer(first), nil
	}
	return a.viewTransfer(c.Transfers[0]), nil
}

func transferQuery(_ *store.Data, q url.Values) store.Query[engine.Transfer] {
	query := cursorQuery[engine.Transfer](q)
	query.In(store.TransferStatus, list(q, "status")...)
	return query
}

// cancelTransfer accepts a reason, which no response shows.
func (a *API) cancelTransfer(rq *request, _ *gateway.TransferCancelParams) (any, *engine.Refusal) {
	t, refusal := rq.account.Transfer(rq.param, engine.CancelTransfer)
	if refusal != nil {
		return nil, refusal
	}
	return a.viewTransfer(t), nil
}

type transferView struct {
	ID            string  `json:"id"`
	Amount        any     `json:"amount"` // an integer; live: a string of digits
	Fee           int64   `json:"fee"`
	Type          string  `json:"type"`
	PixKey        string  `json:"pix_key"`
	PixKeyType    string  `json:"pix_key_type"`
	Status        string  `json:"status"`
	Description   *string `json:"description"`
	ExternalRef   *string `json:"external_ref"`
	ProcessedAt   stamp   `json:"processed_at"`
	TransferredAt stamp   `json:"transferred_at"`
	CreatedAt     stamp   `json:"created_at"`
	UpdatedAt     stamp   `json:"updated_at"`
}

func (a *API) viewTransfer(t *engine.Transfer) transferView {
	v := transferView{
		ID:            t.ID,
		Amount:        t.Amount,
		Fee:           t.Fee,
		Type:          "pix",
		PixKey:        t.PixKey,
		PixKeyType:    t.PixKeyType,
		Status:        t.Status,
		Description:   nullable(&t.Description),
		ExternalRef:   nullable(&t.ExternalRef),
		ProcessedAt:   stamp(t.ProcessedAt),
		TransferredAt: stamp(t.TransferredAt),
		CreatedAt:     stamp(t.CreatedAt),
		UpdatedAt:     stamp(t.UpdatedAt),
	}
	if a.cfg.Dialect.Live(spec.TransferAmount) {
		v.Amount = strconv.FormatInt(t.Amount, 10)
	}
	return v
}
