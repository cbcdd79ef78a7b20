// Package webhook receives the gateway's webhooks.
//
// Its pieces can be used alone: [Parse] reads the body of a delivery, a
// [Verifier] checks its signature, [Sign] makes one.
package webhook
