// Package operations is an outbox for money. A call to the gateway that must
// happen (charge this order, refund that return, pay this supplier) is stored in
// the transaction that decides it, and a River worker carries it out exactly
// once, whatever dies in between.
package operations

// Queue is the River queue in which operations are worked.
const Queue = "gateway_operations"
