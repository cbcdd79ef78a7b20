package spec

import (
	"math/bits"
	"strings"
)

// Dialect selects a reading for each row of docs/assumptions.md in which
// gateways differ: the interface document's, or the published (live)
// gateway's. The zero Dialect is the document's reading of every row.
type Dialect uint64

// Row is a row of docs/assumptions.md in which gateways differ.
type Row uint8

// The rows, named by their ids.
const (
	D1 Row = iota
	D2
	D3
	D4
	D5
	D6
	D7
	D8
	D10
	D11
	D12 // includes D17, which is about a member that exists only in D12's live reading
	D13
	D14
	D15
	D16
	D18
	D19
	D20
	D21
	D22
	D23
	D24
	D26
	D27
	D28
	D29
	D30
	D32
	D33
	D35
	D36
	CustomerPhone
	HostedRoutes
	rows
)

// rowIDs are the rows' ids in docs/assumptions.md.
var rowIDs = [rows]string{
	"D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D10", "D11", "D12", "D13", "D14", "D15", "D16", "D18", "D19", "D20", "D21", "D22",
	"D23", "D24", "D26", "D27", "D28", "D29", "D30", "D32", "D33",
	"D35", "D36", "customer-phone", "hosted-routes",
}

// The two known dialects.
const (
	DocumentDialect Dialect = 0
	LiveDialect     Dialect = 1<<rows - 1
)

// ClientDialect has the live readings that check a member which gateways of the
// document ignore. The client checks its params with it: any other live reading
// would reject what such a gateway accepts.
const ClientDialect Dialect = 1 << D26

// RowOf returns the row with the given id.
func RowOf(id string) (r Row, found bool) {
	for i, own := range rowIDs {
		if own == id {
			return Row(i), true
		}
	}
	return 0, false
}

// With returns d with the live reading of r.
func (d Dialect) With(r Row) Dialect { return d | 1<<r }

// Live reports whether d has the live reading of r.
func (d Dialect) Live(r Row) bool { return d&(1<<r) != 0 }

// Nearest returns DocumentDialect or LiveDialect, whichever shares more
// readings with d.
func (d Dialect) Nearest() Dialect {
	if bits.OnesCount64(uint64(d)) > int(rows)/2 {
		return LiveDialect
	}
	return DocumentDialect
}

// String returns "document", "live", or for a mixture the rows with the live
// reading: "live in D4, D7".
func (d Dialect) String() string {
	switch d {
	case DocumentDialect:
		return "document"
	case LiveDialect:
		return "live"
	default:
		var ids []string
		for i, id := range rowIDs {
			if d&(1<<i) != 0 {
				ids = append(ids, id)
			}
		}
		return "live in " + strings.Join(ids, ", ")
	}
}
