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
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
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

// exported is an entry of the books.
type exported struct {
	at                         time.Time // in the account's zone
	order, record, source, key string
	kind                       books.Kind
	cents                      int64
	currency                   gateway.Currency
}

// Export writes the entries of an account's month, such as "2026-11", to w, the oldest
// first. With one account its name may be "". Their sums are those of [Merchant.Month].
//
// The error is [ErrAccount] if there is no such account, [gateway.ErrValidation] if the
// month or the format is none, and otherwise that of w or the database; then what was
// written is incomplete.
func (m *Merchant) Export(ctx context.Context, w io.Writer, account, month string, format Format) error {
	const op = "books.export"
	a, err := m.account(account)
	if err != nil {
		return err
	}
	if _, err := a.month(op, month); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	var write func(*exported) error
	switch format {
	case CSV:
		write, err = a.csv(out)
	case Hledger:
		write = func(e *exported) error { return a.hledger(out, e) }
	default:
		return invalid(op, "format", `must be "csv" or "hledger"`)
	}
	if err != nil {
		return err
	}
	err = m.store.conn().each(ctx, `SELECT at, subject, record, kind, amount, currency, source, key FROM gateway_facts
		WHERE account = ? AND month = ? AND amount IS NOT NULL ORDER BY at, seq`, []any{a.Name, month}, func(row database.Scanner) error {
		var e exported
		var at int64
		if err := row.Scan(&at, &e.order, &e.record, &e.kind, &e.cents, &e.currency, &e.source, &e.key); err != nil {
			return err
		}
		e.at, e.order = time.UnixMilli(at).In(a.Zone), orderID(e.order)
		return write(&e)
	})
	return errors.Join(err, out.Flush())
}

// csv returns what writes an entry as a line.
func (a *account) csv(w io.Writer) (func(*exported) error, error) {
	out := csv.NewWriter(w)
	line := func(columns ...string) error {
		if err := out.Write(columns); err != nil {
			return err
		}
		out.Flush()
		return out.Error()
	}
	write := func(e *exported) error {
		return line(e.at.Format(time.RFC3339), cell(e.order), cell(e.record), string(e.kind), strconv.FormatInt(e.cents, 10), string(e.currency), e.source, cell(e.key))
	}
	return write, line("at", "order", "record", "kind", "cents", "currency", "source", "key")
}

// cell returns a text that no spreadsheet takes for a formula. A buyer may have chosen it.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
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
func (a *account) hledger(w io.Writer, e *exported) error {
	counterpart := counterparts[e.kind]
	if counterpart == "" { // of a newer release
		return fmt.Errorf("merchant: this release does not know entries of the kind %q", e.kind)
	}
	_, err := fmt.Fprintf(w, "%s %s %s  ; %s\n    assets:gateway:%s  %s\n    %s  %s\n\n", e.at.Format(time.DateOnly), journalText(e.kind), journalText(e.order), journalText(e.key),
		a.Name, gateway.FormatAmount(e.cents, e.currency), counterpart, gateway.FormatAmount(-e.cents, e.currency))
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
