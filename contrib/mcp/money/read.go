package money

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/mcp/intent"
)

// IntentInput names an intent.
type IntentInput struct {
	Intent string `json:"intent" jsonschema:"the id that prepare_… returned"`
}

// GetInput is the input of get.
type GetInput struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// ListInput is the input of list.
type ListInput struct {
	Type   string `json:"type"`
	Status string `json:"status,omitempty"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
	Limit  int    `json:"limit,omitempty" jsonschema:"1 to 50, default 20"`
}

// ListIntentsInput is the input of list_intents.
type ListIntentsInput struct {
	State string `json:"state,omitempty"`
}

// NoInput is the input of a tool without one.
type NoInput struct{}

func (p *plane) addReads(s *mcp.Server) {
	types := map[string][]any{"type": {"transaction", "transfer"}}
	add(s, p, tool{
		name: "get", title: "Read a transaction or transfer", readOnly: true, enums: types,
		description: "Reads a transaction (a payment by a buyer) or a transfer (a payout). Personal data is left out.",
	}, func(ctx context.Context, _ call, in GetInput) (*Result, *question) { return p.get(ctx, in), nil })
	add(s, p, tool{
		name: "list", title: "List transactions or transfers", readOnly: true, enums: types,
		description: "Reads one page of transactions or transfers, newest first. Personal data is left out.",
	}, func(ctx context.Context, _ call, in ListInput) (*Result, *question) { return p.list(ctx, in), nil })
	if p.balance != nil {
		add(s, p, tool{
			name: "balance", title: "Read the balance", readOnly: true,
			description: "Reads the account's balance in cents.",
		}, func(ctx context.Context, _ call, _ NoInput) (*Result, *question) { return p.readBalance(ctx), nil })
	}
	add(s, p, tool{
		name: "get_intent", title: "Read an intent", readOnly: true,
		description: "Shows an intent: its state, its history, the gateway's resource and what to do next.",
	}, func(ctx context.Context, c call, in IntentInput) (*Result, *question) {
		i, err := p.journal.Get(c.who, in.Intent)
		if err != nil {
			return new(Result).fail(err), nil
		}
		return p.withResource(ctx, show(i), i), nil
	})
	add(s, p, tool{
		name: "list_intents", title: "List the intents", readOnly: true,
		description: "Lists the newest 50 intents, newest first.",
		enums:       map[string][]any{"state": {"", "prepared", "sending", "unknown", "done", "refused", "canceled", "expired"}},
	}, func(_ context.Context, c call, in ListIntentsInput) (*Result, *question) {
		return p.listIntents(c.who, intent.State(in.State)), nil
	})
}

func (p *plane) get(ctx context.Context, in GetInput) *Result {
	r := &Result{Docs: errorsPage}
	if in.Type == "transfer" {
		t, err := p.client.Transfers.Get(ctx, in.ID)
		if err != nil {
			return r.fail(err)
		}
		r.Resource = transfer(t)
		return r
	}
	t, err := p.client.Transactions.Get(ctx, in.ID)
	if err != nil {
		return r.fail(err)
	}
	r.Resource = transaction(t)
	return r
}

const maxItems = 50

func (p *plane) list(ctx context.Context, in ListInput) *Result {
	r := &Result{Docs: errorsPage}
	if in.Limit < 0 || in.Limit > maxItems {
		return r.fail(&gateway.ValidationError{Fields: []gateway.FieldError{{Field: "limit", Message: "must be 1 to 50"}}})
	}
	if in.Type == "transfer" {
		page, err := p.client.Transfers.List(ctx, gateway.TransferListParams{
			Cursor: in.Cursor, Limit: in.Limit, Status: gateway.TransferStatus(in.Status),
		})
		if err != nil {
			return r.fail(err)
		}
		for n := range page.Items {
			r.Items = append(r.Items, *transfer(&page.Items[n]))
		}
		r.NextCursor = page.NextCursor
		return r
	}
	params := gateway.TransactionListParams{Cursor: in.Cursor, Limit: in.Limit}
	if in.Status != "" {
		params.Statuses = []gateway.TransactionStatus{gateway.TransactionStatus(in.Status)}
	}
	page, err := p.client.Transactions.List(ctx, params)
	if err != nil {
		return r.fail(err)
	}
	for n := range page.Items {
		r.Items = append(r.Items, summary(&page.Items[n]))
	}
	r.NextCursor = page.NextCursor
	return r
}

// summary shows a transaction of a list, which has no payment code.
func summary(t *gateway.Transaction) Resource {
	return Resource{
		Type: "transaction", ID: code(t.ID), Status: code(t.Status), Amount: t.Charged(), Currency: code(t.Currency), Method: code(t.Method),
		Settled: t.Status.Settled(), Paid: t.Paid(), Refunded: t.RefundedAmount, CreatedAt: stamp(t.CreatedAt.Time),
		Untrusted: untrusted("buyer_name", t.Buyer.Name, "external_ref", t.ExternalRef, "metadata", t.Metadata.Text(), "products", products(t.Products)),
	}
}

func (p *plane) readBalance(ctx context.Context) *Result {
	r := &Result{Docs: errorsPage}
	b, err := p.balance.Balance(ctx)
	if err != nil {
		return r.fail(err)
	}
	r.Balance, r.Currency = &b.Balance, code(b.Currency)
	return r
}

func (p *plane) listIntents(who string, state intent.State) *Result {
	all, err := p.journal.List(who)
	if err != nil {
		return new(Result).fail(err)
	}
	r := &Result{Docs: readme}
	for n := len(all) - 1; n >= 0 && len(r.Summaries) < maxItems; n-- {
		if i := all[n]; state == "" || i.State == state {
			r.Summaries = append(r.Summaries, Summary{
				Intent: i.ID, Kind: string(i.Kind), State: string(i.State), Amount: i.Amount, Currency: i.Currency,
				Prepared: stamp(i.PreparedAt), Untrusted: untrusted("for", i.For),
			})
		}
	}
	return r
}

// withResource adds the resource of an intent that was sent, as the gateway has it now.
func (p *plane) withResource(ctx context.Context, r *Result, i *intent.Intent) *Result {
	if i.ResourceID == "" {
		return r
	}
	kind := "transaction"
	if i.Kind == intent.Payout {
		kind = "transfer"
	}
	if got := p.get(ctx, GetInput{Type: kind, ID: i.ResourceID}); got.failed {
		r.quote(got.Untrusted[gatewayMessage])
	} else {
		r.Resource = got.Resource
	}
	return r
}
