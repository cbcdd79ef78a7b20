package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gateway-go/gateway/internal/rules"
)

// FindOptions bounds a search by reference: the interface has no filter for
// it, so the newest pages of the list are read.
type FindOptions struct {
	Since    time.Time // older transactions are not looked at; the zero time has no bound
	MaxPages int       // pages of 100 to read; 10 where it is 0
}

// FindByExternalRef looks for the transaction that has your reference and
// reads it: GET /v2/transactions, page by page, then GET
// /v2/transactions/{id}. It is what settles an [ErrOutcomeUnknown].
//
// [ErrNotFound] means that it is not among the pages that were read. A create
// with the same reference then settles it: it is refused where there is one.
func (s *TransactionsService) FindByExternalRef(ctx context.Context, ref string, find FindOptions, opts ...RequestOption) (*Transaction, error) {
	const op = "transactions.find_by_external_ref"
	if ref == "" {
		return nil, &ValidationError{Op: op, Fields: []FieldError{{Field: "external_ref", Message: "is required", Code: rules.CodeRequired}}}
	}
	left := firstOf(find.MaxPages, 10)
	for page, err := range s.Pages(ctx, TransactionListParams{Limit: rules.MaxPageSize, From: find.Since}, opts...) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].ExternalRef == ref {
				return s.Get(ctx, page.Items[i].ID, opts...)
			}
		}
		if left--; left <= 0 {
			break
		}
	}
	return nil, &Error{
		Op: op, Reference: ref, kind: http.StatusNotFound,
		Title: "Not Found", Detail: "no transaction with this reference on the pages that were read",
	}
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
	pause, longest := firstOf(wait.First, time.Second), firstOf(wait.Longest, 15*time.Second)
	for {
		t, err := s.Get(ctx, id, opts...)
		if err == nil {
			last = t
		}
		if err == nil && until(t) || err != nil && !passes(ctx, err) {
			return last, err
		}
		if err := sleep(ctx, max(pause, retryAfterOf(err))); err != nil {
			return last, fmt.Errorf("gateway: transactions.wait: %w", err)
		}
		pause = min(pause+pause/2, longest)
	}
}

// passes reports whether a failed read may succeed later.
func passes(ctx context.Context, err error) bool {
	var e *Error
	return ctx.Err() == nil && errors.As(err, &e) &&
		(e.StatusCode == 0 && !e.hopeless || e.Is(ErrRateLimited) || e.Is(ErrServer) || e.StatusCode == http.StatusRequestTimeout)
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
