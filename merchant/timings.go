package merchant

import (
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

const day = 24 * time.Hour

// How often a record that waits for something is compared.
const (
	soonest = time.Minute
	latest  = 6 * time.Hour
	giveUp  = 60 * day

	soonestRefund = 100 * time.Millisecond // that is confirmed and not shown
	pastDue       = time.Hour              // a subscription
	fresh         = time.Hour              // the age until which a record is in the first lane
)

// growing returns a wait that grows with the time that has passed.
func growing(passed time.Duration) time.Duration { return min(max(passed/4, soonest), latest) }

// laneOf returns the lane of what waits: what was made a short time ago goes first.
func laneOf(age time.Duration) ledger.Lane {
	if age < fresh {
		return ledger.Fresh
	}
	return ledger.Open
}
