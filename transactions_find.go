package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway/internal/rules"
)

// FindOptions bounds a search by reference. The interface has no filter for it,
// so the list is read from its newest page on: to the transaction, to Since, to
// MaxPages or to the end, whichever comes first.
type FindOptions struct {
	// ID is looked at first: [Error.ResourceID] or [OutcomeError.ResourceID],
	// where the gateway named one. A search then takes one request.
	ID string

	// Since is when the reference can first have been used, such as the time of
	// the order less some minutes for the difference of the clocks. Older
	// transactions are not read. The zero time has no bound.
	Since time.Time

	// MaxPages is how many pages of 100 are read. Where it is 0 it is all pages
	// back to Since, or 10 without a Since.
	MaxPages int
}

const (
	findByReference = "transactions.find_by_external_ref"
	findPages       = 10 // without any bound of the caller's
)

// FindByExternalRef looks for the transaction that has your reference and
// reads it: GET /v2/transactions, page by page, then GET
// /v2/transactions/{id}. It settles an [ErrOutcomeUnknown].
//
// [ErrNotFound]: no transaction back to Since has the reference.
// [ErrOutcomeUnknown]: the search came to MaxPages before that, so there may be
// one; the error says how far it looked. A create with the same reference
// settles that too: it is rejected where there is one.
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
	for page, err := range s.Pages(ctx, TransactionListParams{Limit: rules.MaxPageSize, From: find.Since}, opts...) {
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
		Title: "Not Found", Detail: fmt.Sprintf("none of the %d transactions%s has this reference", read, find.since()),
	}
}

func (f FindOptions) check(ref string) error {
	switch {
	case ref == "":
		return &ValidationError{Op: findByReference, Fields: []FieldError{
			{Field: "external_ref", Message: "is required", Code: rules.CodeRequired},
		}}
	case f.MaxPages < 0:
		return &ValidationError{Op: findByReference, Fields: []FieldError{
			{Field: "max_pages", Message: "must be at least 0", Code: rules.CodeTooSmall},
		}}
	default:
		return nil
	}
}

// pages is how many are read; 0 is all.
func (f FindOptions) pages() int {
	if f.MaxPages == 0 && f.Since.IsZero() {
		return findPages
	}
	return f.MaxPages
}

func (f FindOptions) since() string {
	if f.Since.IsZero() {
		return ""
	}
	return " since " + f.Since.UTC().Format(time.RFC3339)
}

// unfinished is a search that its bound ended.
func unfinished(ref string, read int, oldest Timestamp) error {
	back := ""
	if !oldest.IsZero() {
		back = ", back to " + oldest.UTC().Format(time.RFC3339)
	}
	return &OutcomeError{Op: findByReference, Reference: ref, Err: &Error{
		Op: findByReference, Reference: ref, unknown: true,
		Detail: fmt.Sprintf("none of the newest %d transactions%s has this reference, and there are more: "+
			"set Since or a larger MaxPages to look further", read, back),
	}}
}

// WaitOptions says how often [TransactionsService.Wait] reads.
type WaitOptions struct {
	First   time.Duration // before the second read; 1 s where it is 0
	Longest time.Duration // waits grow by a half up to this; 15 s where it is 0
}

// Wait reads a transaction until it is as wanted, or ctx ends: GET
// /v2/transactions/{id}. A nil until waits until the transaction is settled or
// final. Webhooks tell sooner and cost less; Wait is for what runs at a
// person's side.
//
// Failures that pass, such as an overloaded gateway, are waited out too. When
// ctx ends Wait returns the transaction as last read, or nil, with ctx's error.
func (s *TransactionsService) Wait(ctx context.Context, id string, until func(*Transaction) bool, wait WaitOptions, opts ...RequestOption) (*Transaction, error) {
	if until == nil {
		until = func(t *Transaction) bool { return t.Settled() || t.Status.Final() }
	}
	var last *Transaction
	pause, longest := cmp.Or(wait.First, time.Second), cmp.Or(wait.Longest, 15*time.Second)
	for {
		t, err := s.Get(ctx, id, opts...)
		if err == nil {
			last = t
		}
		if err == nil && until(t) || err != nil && !passes(ctx, err) {
			return last, err
		}
		if err := sleep(ctx, max(pause, retryAfterOf(err))); err != nil {
			return last, &Error{Op: "transactions.wait", Err: err}
		}
		pause = min(pause+pause/2, longest)
	}
}

// passes reports whether a failed read may succeed later.
func passes(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || ctx.Err() != nil || e.hopeless {
		return false
	}
	switch e.status() {
	case 0, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return true
	default:
		return e.status() >= http.StatusInternalServerError
	}
}

func retryAfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
