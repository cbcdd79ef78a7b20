package merchant

import (
	"context"
	"fmt"
	"slices"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Book returns the Merchant bound to one book, see [Account]: it finds the records of this
// book alone. Run, Webhook and Ready are the same.
//
// With accounts of several books, a call that names neither an account nor a charge, such as
// [Merchant.Order], needs it: without it the error is [ErrAccount]. So is that of a book which
// no account has ever had. The book of an account that was removed from the configuration can
// still be read.
func (m *Merchant[TX]) Book(name string) *Merchant[TX] { return &Merchant[TX]{*m.bound(name)} }

// bound returns m bound to a book, or to none.
func (m *core) bound(book string) *core { return &core{*m.within(book), m.shared} }

// books returns the books of the process's accounts, or the one that m is bound to.
func (m *reading) books() []string {
	if m.ofBook != "" {
		return []string{m.ofBook}
	}
	var names []string
	for _, a := range m.accounts {
		if !slices.Contains(names, a.Book) {
			names = append(names, a.Book)
		}
	}
	slices.Sort(names)
	return names
}

// oneBook returns the book of a record that only its ID names.
func (m *reading) oneBook(ctx context.Context) (string, error) {
	own := m.books()
	switch {
	case len(own) > 1:
		return "", fmt.Errorf("%w: the accounts have several books, %q: call Book with one of them first", ErrAccount, own)
	case m.ofBook == "" || slices.ContainsFunc(m.sorted(), func(a *account) bool { return a.Book == m.ofBook }):
		return own[0], nil
	}
	known, err := m.outside().Books(ctx)
	if err == nil && !slices.Contains(known, m.ofBook) {
		err = fmt.Errorf("%w: no account has the book %q", ErrAccount, m.ofBook)
	}
	return m.ofBook, err
}

// orderSubject returns the subject of an order that only its ID names.
func (m *reading) orderSubject(ctx context.Context, id string) (ledger.Subject, error) {
	book, err := m.oneBook(ctx)
	return ledger.OrderSubject(book, id), err
}
