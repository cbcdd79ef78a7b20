package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
	"github.com/gateway-go/gateway/internal/spec"
)

// TransactionListParams is the query of GET /v2/transactions. If a filter has
// several values, a transaction must match one of them.
type TransactionListParams struct {
	Cursor    string    `url:"cursor,omitempty"` // of another page; see [Page.NextCursor]
	Limit     int       `url:"limit,omitempty"`  // 1 to 100; default 20
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

func (t *Transaction) listed() (id, reference string, created time.Time) {
	return t.ID, t.ExternalRef, t.CreatedAt.Time
}

// listedTransaction is a list item, which it decodes from either shape.
type listedTransaction Transaction

// plainTransaction is a Transaction without methods.
type plainTransaction Transaction

// listedItem is a list item on the wire, in either shape.
type listedItem struct {
	plainTransaction

	Payment  *listedPayment  `json:"payment"`
	Products []listedProduct `json:"products"` // replaces the one of Transaction
}

type listedPayment struct {
	Method       Method     `json:"method"`
	Currency     Currency   `json:"currency"`
	Country      Country    `json:"country"`
	ExternalRef  string     `json:"external_ref"`
	Amount       int64      `json:"amount"`
	BasePrice    int64      `json:"base_price"`
	Installments int        `json:"installments"`
	Fee          *Fee       `json:"fee"`
	Pix          *listedPix `json:"pix"`
}

type listedPix struct {
	QRCode   string `json:"qrcode"`
	EndToEnd string `json:"endToEnd"`
}

type listedProduct struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Price     int64  `json:"price"`
	UnitPrice int64  `json:"unit_price"`
	Quantity  int    `json:"quantity"`
}

// UnmarshalJSONFrom reads either shape.
func (t *listedTransaction) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var item listedItem
	if err := jsonv2.UnmarshalDecode(dec, &item); err != nil {
		return err
	}
	t.take(&item)
	return nil
}

// DecodeNode does the same for [jsonread.Decode].
func (t *listedTransaction) DecodeNode(d *jsonread.Document, at int) bool {
	var item listedItem
	if !d.DecodeAt(at, &item) {
		return false
	}
	t.take(&item)
	return true
}

func (t *listedTransaction) take(item *listedItem) {
	*t = listedTransaction(item.plainTransaction)
	if item.Products != nil {
		t.Products = make([]ProductLine, len(item.Products))
	}
	for i, p := range item.Products {
		t.Products[i] = ProductLine{
			Name: cmp.Or(p.Name, p.Title), Price: cmp.Or(p.Price, p.UnitPrice), Quantity: p.Quantity,
		}
	}
	if item.Payment != nil {
		t.flatten(item.Payment)
	}
}

// flatten copies the fields that the item lacks from the payment.
func (t *listedTransaction) flatten(p *listedPayment) {
	t.Method = cmp.Or(t.Method, p.Method)
	t.Currency = cmp.Or(t.Currency, p.Currency)
	t.Country = cmp.Or(t.Country, p.Country)
	t.ExternalRef = cmp.Or(t.ExternalRef, p.ExternalRef)
	t.Amount = cmp.Or(t.Amount, p.Amount)
	t.BasePrice = cmp.Or(t.BasePrice, p.BasePrice)
	t.Installments = cmp.Or(t.Installments, p.Installments)
	t.Fee = cmp.Or(t.Fee, p.Fee)
	if t.Pix == nil && p.Pix != nil {
		t.Pix = &PixDetails{QRCode: p.Pix.QRCode, EndToEndID: p.Pix.EndToEnd}
	}
}

// transactions returns a page of list items, which may be nil, as transactions.
func transactions(page *Page[listedTransaction]) *Page[Transaction] {
	if page == nil {
		return nil
	}
	out := &Page[Transaction]{
		Total: page.Total, NextCursor: page.NextCursor, PrevCursor: page.PrevCursor, Number: page.Number, Limit: page.Limit,
	}
	if page.Items != nil {
		out.Items = make([]Transaction, len(page.Items))
	}
	for i := range page.Items {
		out.Items[i] = Transaction(page.Items[i])
	}
	return out
}

// FindOptions limits a search by reference. The interface has no filter for
// references, so the list is read from its newest page until the transaction
// is found, or Since, MaxPages or the end is reached.
type FindOptions struct {
	// ID is tried first: [Error.ResourceID] or [OutcomeError.ResourceID], if the
	// gateway named one. If that transaction has the reference, the list is not
	// read.
	ID string

	// Since is the earliest time at which the transaction could have been created,
	// such as the time of the order minus a few minutes for clock skew. It is
	// compared with CreatedAt, which is set by the gateway's clock. Older
	// transactions are not read. The zero time means no limit.
	Since time.Time

	// Until is the latest time at which the transaction could have been created.
	// Newer transactions are not read, so a search for an old one takes few
	// requests even on a busy account. The zero time means no limit.
	Until time.Time

	// MaxPages limits how many pages of 100 transactions are read. By default all
	// pages back to Since are read, or 10 pages without a Since.
	MaxPages int
}

const (
	findByReference = "transactions.find_by_external_ref"
	findPages       = 10 // if the caller sets no limit
)

// FindByExternalRef finds the transaction with your reference and reads it: GET
// /v2/transactions, page by page, then GET /v2/transactions/{id}. Use it to look
// a transaction up without creating it. To resolve an [ErrOutcomeUnknown], repeat
// the create with [RepeatOf] or [FirstSent].
//
// The error is [ErrNotFound] if no transaction back to Since has the reference.
// Shortly after an [ErrOutcomeUnknown], that proves nothing, because the gateway
// may still be processing the create. The error is [ErrOutcomeUnknown] if the
// search reached MaxPages, so that there may be such a transaction; the message
// says how far the search went. Creating the transaction with the same reference
// resolves this too: the create is rejected if there already is one.
func (s *TransactionsService) FindByExternalRef(ctx context.Context, ref string, find FindOptions, opts ...RequestOption) (*Transaction, error) {
	if err := find.check(ref); err != nil {
		return nil, err
	}
	if find.ID != "" {
		t, err := s.Get(ctx, find.ID, opts...)
		if err == nil && t.ExternalRef == ref {
			return t, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	read, pages := 0, 0
	var oldest Timestamp
	for page, err := range s.Pages(ctx, TransactionListParams{Limit: spec.MaxPageSize, From: find.Since, To: find.Until}, opts...) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].ExternalRef == ref {
				return s.Get(ctx, page.Items[i].ID, opts...)
			}
			oldest = page.Items[i].CreatedAt
		}
		read += len(page.Items)
		if pages++; pages == find.pages() && page.HasMore() {
			return nil, unfinished(ref, read, oldest)
		}
	}
	return nil, &Error{
		Op: findByReference, Reference: ref, kind: http.StatusNotFound,
		Title: "Not Found", Detail: fmt.Sprintf("no transaction%s has this reference (%d checked)", find.period(), read),
	}
}

func (f FindOptions) check(ref string) error {
	switch {
	case ref == "":
		return &ValidationError{Op: findByReference, Fields: []FieldError{
			{Field: "external_ref", Message: "is required", Code: spec.CodeRequired},
		}}
	case !f.Until.IsZero() && f.Until.Before(f.Since):
		return &ValidationError{Op: findByReference, Fields: []FieldError{
			{Field: "until", Message: "must not be before since", Code: spec.CodeInvalid},
		}}
	case f.MaxPages < 0:
		return &ValidationError{Op: findByReference, Fields: []FieldError{
			{Field: "max_pages", Message: "must be at least 0", Code: spec.CodeTooSmall},
		}}
	default:
		return nil
	}
}

// pages returns the number of pages to read; 0 means all.
func (f FindOptions) pages() int {
	if f.MaxPages == 0 && f.Since.IsZero() {
		return findPages
	}
	return f.MaxPages
}

func (f FindOptions) period() (text string) {
	if !f.Since.IsZero() {
		text = " from " + f.Since.UTC().Format(time.RFC3339)
	}
	if !f.Until.IsZero() {
		text += " up to " + f.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// unfinished returns the error for a search that reached MaxPages.
func unfinished(ref string, read int, oldest Timestamp) error {
	back := ""
	if !oldest.IsZero() {
		back = ", back to " + oldest.UTC().Format(time.RFC3339)
	}
	return &OutcomeError{Op: findByReference, Reference: ref, Err: &Error{
		Op: findByReference, Reference: ref, unknown: true,
		Detail: fmt.Sprintf("no transaction with this reference was found (%d checked%s), and there are more: "+
			"set Since or a larger MaxPages to look further", read, back),
	}}
}
