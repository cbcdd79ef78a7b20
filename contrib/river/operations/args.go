package operations

import "github.com/riverqueue/river"

// jobArgs wakes a worker up for one operation. River shows it in its UI and
// stores it, so it holds nothing but the operation's identity.
type jobArgs struct {
	ID        int64  `json:"id"`
	Operation string `json:"operation"` // "transactions.refund"
}

var _ river.JobArgs = jobArgs{}

// Kind names the job in River.
func (jobArgs) Kind() string { return "gateway_operation" }
