package merchant

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// Format is a format of [Merchant.Export].
type Format string

// The formats.
const (
	// CSV has a line for each entry, after a line of names: at, order, record, kind,
	// cents, currency, source and key. cents is signed as the entry changes what remains
	// for you, and the key is unique among all entries. An order or a record that a
	// spreadsheet would take for a formula ("=…", "+…", "-…", "@…") has a ' before it.
	CSV Format = "csv"

	// Hledger is a journal of hledger or ledger with a transaction for each entry, between
	// assets:gateway:ACCOUNT and the counterpart of its kind, such as income:payments.
	Hledger Format = "hledger"
)

// Export writes the entries of an account's month, such as "2026-11", to w, the oldest
// first. With one account its name may be "". Their sums are those of [Merchant.Month].
//
// The error is [ErrAccount] if there is no such account, [gateway.ErrValidation] if the
// month or the format is none, and otherwise that of w or the database; then what was
// written is incomplete.
func (m *reading) Export(ctx context.Context, w io.Writer, account, month string, format Format) error {
	const op = "books.export"
	a, err := m.account(account)
	if err != nil {
		return err
	}
	if _, err := a.month(op, month); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	var write func(*ledger.NewFact) error
	switch format {
	case CSV:
		write, err = a.csv(out)
	case Hledger:
		write = func(e *ledger.NewFact) error { return a.hledger(out, e) }
	default:
		return invalid(op, "format", `must be "csv" or "hledger"`)
	}
	if err != nil {
		return err
	}
	err = m.outside().Entries(ctx, a.Name, month, func(e *ledger.NewFact) error {
		e.At, e.Order = e.At.In(a.Zone), ledger.OrderID(ledger.Subject{ID: e.Order})
		return write(e)
	})
	return errors.Join(err, out.Flush())
}

// csv returns what writes an entry as a line.
func (a *account) csv(w io.Writer) (func(*ledger.NewFact) error, error) {
	out := csv.NewWriter(w)
	line := func(columns ...string) error {
		if err := out.Write(columns); err != nil {
			return err
		}
		out.Flush()
		return out.Error()
	}
	write := func(e *ledger.NewFact) error {
		return line(e.At.Format(time.RFC3339), cell(e.Order), cell(e.Record), string(e.Kind), strconv.FormatInt(e.Amount, 10), string(e.Currency), string(e.Source), cell(e.StoredKey))
	}
	return write, line("at", "order", "record", "kind", "cents", "currency", "source", "key")
}

// cell returns a text of which no spreadsheet takes a part for a formula, in whatever language
// it is: some separate cells by semicolons, and some take full-width signs. A buyer may have
// chosen the text.
func cell(text string) string {
	begins := true
	var b strings.Builder
	for _, r := range text {
		if begins && strings.ContainsRune("=+-@\t\r＝＋－＠", r) {
			b.WriteByte('\'')
		}
		b.WriteRune(r)
		begins = strings.ContainsRune(";,\t\r\n|", r) || begins && strings.ContainsRune(" \u00a0\"", r)
	}
	return b.String()
}

// counterparts are the accounts of a journal to which the money goes, or from which it
// comes.
var counterparts = map[books.Kind]string{
	books.EntryPaid:     "income:payments",
	books.EntryFee:      "expenses:fees",
	books.EntryRefunded: "income:refunds",
	books.EntryDisputed: "income:disputes",
	books.EntryPaidOut:  "assets:payouts",
	books.EntryAdjusted: "expenses:adjustments",
}

// hledger writes an entry as a transaction of a journal.
func (a *account) hledger(w io.Writer, e *ledger.NewFact) error {
	counterpart := counterparts[e.Kind]
	if counterpart == "" { // of a newer release
		return fmt.Errorf("merchant: this release does not know entries of the kind %q", e.Kind)
	}
	_, err := fmt.Fprintf(w, "%s %s %s  ; %s\n    assets:gateway:%s  %s\n    %s  %s\n\n", e.At.Format(time.DateOnly), journalText(e.Kind), journalText(e.Order), journalText(e.StoredKey),
		a.Name, gateway.FormatAmount(e.Amount, e.Currency), counterpart, gateway.FormatAmount(-e.Amount, e.Currency))
	return err
}

// journalText returns a text that can't end the line or begin a comment of a journal.
func journalText[S ~string](text S) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == ';' || r == '|' {
			return ' '
		}
		return r
	}, string(text))
}
