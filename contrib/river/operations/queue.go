package operations

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// baseQueue is the first part of the queues' names.
const baseQueue = "gateway_operations"

// River limits what the name of a queue contains.
var queueName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

const maxQueueName = 64

// queueOf returns the queue of an account.
func queueOf(account string) string {
	if name := baseQueue + "_" + account; len(name) <= maxQueueName && queueName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(account))
	return baseQueue + "_" + hex.EncodeToString(sum[:8])
}

// Queue returns the name of the River queue of the account's operations:
// "gateway_operations_" and the account's name, or a hash of a name that has
// capital letters or dots or is longer than 45 characters. Pause and resume it
// with River: QueuePause(ctx, outbox.Queue(), nil). Operations inserted meanwhile
// wait.
func (o *Outbox) Queue() string { return queueOf(o.engine.account) }
