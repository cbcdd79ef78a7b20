// Package profile defines the possible readings of the rows of docs/assumptions.md
// and the mock gateway's settings for them.
package profile

import (
	"fmt"
	"slices"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/spec"
)

// The readings that the mock gateway has settings for. Any other reading describes
// a gateway's behavior in words.
const (
	Assumed  = "assumed"  // the row applies
	Document = "document" // as in the document dialect
	Live     = "live"     // as in the live dialect
	Lenient  = "accepts transactions without products or buyer"
	Fee      = "a payment of 10000 cents costs %d"                           // transaction-fee
	Settled  = "amount is %d where base_price and the paid amount are 10000" // settled-share
)

// The rows with their own readings.
const (
	LenientRow = "bare-transaction"
	FeeRow     = "transaction-fee"
	SettledRow = "settled-share"
	listedFee  = "listed-fee" // has the same reading as listed-transaction, which precedes it
)

// Settings are the mock gateway's settings for a set of readings.
type Settings struct {
	Dialect spec.Dialect
	Lenient bool
	Fee     int64 // cents
	Settled int64 // hundredths of a percent; 0 means all
}

// Read returns the settings for readings (by row), and the rows whose reading has
// no setting, in the order of docs/assumptions.md. It returns an error if a row does
// not exist.
func Read(readings map[string]string) (set Settings, unsupported []string, err error) {
	left := len(readings)
	for _, row := range docs.Assumptions() {
		reading, found := readings[row.ID]
		if !found {
			continue
		}
		left--
		if !set.add(row.ID, reading) {
			unsupported = append(unsupported, row.ID)
		}
	}
	if left > 0 {
		return set, unsupported, unknownRow(readings)
	}
	return set, unsupported, nil
}

// add applies a reading and reports whether there is a setting for it.
func (s *Settings) add(id, reading string) bool {
	row, dialect := spec.RowOf(id)
	switch {
	case dialect && reading == Live:
		s.Dialect = s.Dialect.With(row)
		return true
	case dialect:
		return reading == Document
	case id == listedFee:
		return reading == Document && !s.Dialect.Live(spec.ListedTransaction) || reading == Live && s.Dialect.Live(spec.ListedTransaction)
	case reading == Assumed:
		return true
	case id == LenientRow && reading == Lenient:
		s.Lenient = true
		return true
	case id == FeeRow:
		return scan(reading, Fee, &s.Fee)
	case id == SettledRow:
		if scan(reading, Settled, &s.Settled) && s.Settled > 0 && s.Settled < 10000 {
			return true
		}
		s.Settled = 0
	}
	return false
}

// scan reads the number in a reading.
func scan(reading, format string, to *int64) bool {
	n, err := fmt.Sscanf(reading, format, to)
	if err == nil && n == 1 && *to >= 0 && fmt.Sprintf(format, *to) == reading {
		return true
	}
	*to = 0
	return false
}

// Sets reports whether there is a setting for a row.
func Sets(id string) bool {
	_, dialect := spec.RowOf(id)
	return dialect || id == listedFee || id == LenientRow || id == FeeRow || id == SettledRow
}

// unknownRow returns an error that names a row which docs/assumptions.md does not have.
func unknownRow(readings map[string]string) error {
	for id := range readings {
		if !slices.ContainsFunc(docs.Assumptions(), func(a docs.Assumption) bool { return a.ID == id }) {
			return fmt.Errorf("docs/assumptions.md has no row %q", id)
		}
	}
	return nil
}

// Dialect returns the readings of one of the two dialects.
func Dialect(live bool) map[string]string {
	readings := map[string]string{}
	for _, row := range docs.Assumptions() {
		if !Sets(row.ID) || row.ID == LenientRow || row.ID == FeeRow || row.ID == SettledRow {
			continue
		}
		readings[row.ID] = Document
		if live {
			readings[row.ID] = Live
		}
	}
	return readings
}
