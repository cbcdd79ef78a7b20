package webhook

import (
	"time"

	"github.com/gateway-go/gateway"
)

// SignText returns the signature that Sign makes, for any timestamp string.
func SignText(key gateway.Secret, timestamp string, body []byte) string {
	return mac(key, timestamp, body)
}

// Verdict returns the verdict on an event of the kind for a resource.
func Verdict(k Kind, state any, now time.Time) string {
	var r resource
	switch s := state.(type) {
	case *gateway.Transaction:
		r.transaction = s
	case *gateway.Transfer:
		r.transfer = s
	case *gateway.Subscription:
		r.subscription = s
	}
	c := confirmationBy(&Event{Kind: k, Family: k.Family(), ResourceID: "x"}, &r, now)
	return [...]string{confirmed: "confirmed", behind: "behind", refuted: "refuted"}[c.verdict]
}

// KindRow is a row of the table of kinds, for tests.
type KindRow struct {
	Kind         Kind
	Documented   bool
	Rank         int64
	SkipLate     bool
	HasProof     bool
	DerivedFrom  []string
	Occasion     bool
	OccasionData []string
}

// KindRows returns the table of kinds.
func KindRows() (rows []KindRow) {
	for _, row := range kindTable {
		rows = append(rows, KindRow{
			Kind: row.kind, Documented: !row.undocumented, Rank: row.rank, SkipLate: row.skipLate, HasProof: row.proof != nil,
			DerivedFrom: row.derivedFrom, Occasion: row.occasion != nil, OccasionData: row.occasionMember,
		})
	}
	return rows
}

// Digest identifies the content of an event.
func Digest(body []byte) string {
	p, _ := parse(body)
	return digest(p)
}
