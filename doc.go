// Package gateway is the client of a payment gateway for merchants:
// transactions by Pix, voucher and card, refunds, customers, payouts,
// subscriptions and hosted checkout.
//
// The package webhook receives the gateway's notifications, mockserver is the
// whole gateway in memory for tests, and legacy speaks the v1 surface.
//
// # Construct
//
// A [Client] is made once and used from any number of goroutines:
//
//	client, err := gateway.New(baseURL, gateway.BearerToken(key))
//	if err != nil {
//		return err
//	}
//
// [New] takes the address of one environment, production or sandbox, and a
// [Credential] of the same one; it refuses what can't work (a public key, plain
// http to another host, a live key for a sandbox) before anything is sent.
// [NewFromEnv] reads both from the environment. Options begin with With and hold
// for every call; [Client.With] makes a copy with further ones over the same
// connections. A [RequestOption] holds for one call.
//
// # First payment
//
//	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
//		ExternalRef: "order-17",
//		Amount:      4990, // R$ 49.90
//		Method:      gateway.Pix,
//		Buyer:       gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"},
//		Products:    []gateway.Product{{Name: "Mug", Price: 4990}},
//	})
//	if err != nil {
//		return err
//	}
//	show(tx.Pix.QRCode)
//
// The buyer pays in the bank's app; a webhook says so. Hand over the goods when
// [Transaction.Settled] holds, not when the state is "paid": a card ends in
// "captured". [TransactionsService.Wait] polls where no webhook can be received.
//
// Every params type has a Validate method with all limits of the interface, and
// every call runs it first: a [ValidationError] means that nothing was sent.
//
// # Errors
//
// A rejected call returns an [*Error] with the status, the gateway's code and
// words, the fields at fault and the request's id for a question to support.
// Every error of every method is of exactly one kind, and the kind says what to
// do. Ask for it with errors.Is:
//
//	switch {
//	case errors.Is(err, gateway.ErrOutcomeUnknown):
//		return "look it up" // the write may have been applied: see below
//	case errors.Is(err, gateway.ErrNotSent):
//		return "try again" // nothing reached the gateway
//	case errors.Is(err, gateway.ErrDuplicate):
//		return "read the first one" // the reference was used before
//	case errors.Is(err, gateway.ErrConflict):
//		return "read the resource" // its state does not allow the call
//	case errors.Is(err, gateway.ErrValidation):
//		return "fix the request" // err names the fields
//	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrRetired):
//		return "stop" // there is no such resource, or no longer such an endpoint
//	case errors.Is(err, gateway.ErrUnauthorized), errors.Is(err, gateway.ErrForbidden):
//		return "fix the key" // it is wrong, or it is not allowed to do this
//	case errors.Is(err, gateway.ErrRateLimited), errors.Is(err, gateway.ErrServer):
//		return "try later" // the client has already tried a few times
//	}
//
// The two kinds that a status does not name: [ErrNotSent] is a gateway that
// could not be reached (dial, DNS, TLS, a proxy), a credential that could not be
// had, or a context that ended first; nothing was done, and the same call may be
// made again. [ErrOutcomeUnknown] is the opposite: the next section is about it.
// [ErrServer] is also a read without a response, a redirect and a response that
// can't be read; a write never is, unless the gateway says that it failed.
//
// Where a 409 names the resource that has the reference, [Error.ResourceID] is
// its id. No error prints a key, a body or a query.
//
// # When the outcome is unknown
//
// A write whose response was lost (a timeout, a broken connection, a server
// error) may have been applied or not. So may one whose repeat is rejected: a
// token that is "already used" was perhaps used by the lost attempt. Where the
// resource can be found by its reference, the client has found it and returns
// it. What is left is [ErrOutcomeUnknown]; the [*OutcomeError] around it carries
// the operation, the reference and the idempotency key under which the write
// was sent and, where a response names it, the id of the resource. Never send
// the write again with a new reference: that is how buyers are charged twice. Do
// one of these:
//
//   - Repeat the call with the same ExternalRef or IdempotencyKey, the one in
//     [OutcomeError.Reference] where the client made it. If the first call was
//     applied, nothing happens twice.
//   - Look: [TransactionsService.FindByExternalRef], or Get where there is an
//     id. For a refund, read the transaction and compare its RefundedAmount
//     with what it was before.
//   - Leave the order open until the webhook comes.
//
// # Idempotency keys
//
// A refund, a cancellation and an update have no reference of their own. Some
// gateways honour the header Idempotency-Key instead: they carry out a request
// with the same key once and return the first response again. The interface
// document knows no such header, so ask your gateway; if it does, make the
// client with [WithIdempotencyKeys]. Each of these writes then has a key and is
// repeated with it, and a lost response no longer leaves it unknown. Without
// the option a refund of 500 that is repeated by hand after a lost response may
// refund 1000.
//
// Give the call a key of your own with the option [IdempotencyKey], stored
// before the call, so that it survives a crash of your process. Otherwise the
// client makes one for the call, and [OutcomeError.IdempotencyKey] returns it
// where all attempts were lost: repeat the call with it later.
//
// # Retries
//
// The client repeats what is safe to repeat, three attempts by default, with
// growing pauses and with respect for Retry-After. Reads are safe. A create
// with a reference is safe, since the gateway carries a reference out only
// once; where you give none the client makes one and hands it back in
// [Response.Reference] and in every error. Refunds, cancellations and updates
// are repeated only where it is certain that nothing was sent, where the
// gateway said that it was too busy, or with idempotency keys. [NoRetry], [MaxAttempts] and
// [AttemptTimeout] change this for one call.
//
// A reference is best made by you and stored with the order before the first
// call, so that it survives a crash of your own process.
//
// # Paging
//
// List returns one page. All ranges over everything, Pages over whole pages;
// neither sends a request before the loop begins or after it ends:
//
//	for tx, err := range client.Transactions.All(ctx, gateway.TransactionListParams{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(tx.ExternalRef, tx.Status)
//	}
//
// [Collect] makes a slice of it. A [Page] can be resumed later from its cursor.
//
// # Money
//
// Every amount is an int64 in the currency's smallest unit, cents for BRL; no
// float exists anywhere. [FormatAmount] writes one for people. No amount has a
// zero that means "everything": a full refund says Full.
//
// # Values
//
// A member of a request at its zero value is not sent. Where null or zero has a
// meaning of its own the member is an [Opt], made with [Set] or [Null].
//
// In a response null and "" are both ""; states and other enums are strings that
// are kept even where this version does not know them, which Known tells.
// Unknown members are kept in Extra. A result encodes to the members and values
// that the gateway sent, under encoding/json too, with two exceptions: what was
// absent, null or "" may become another of the three, and a number where the
// interface has a string, or the other way round, is written as the interface
// has it. To decode a result that you stored, use JSON v2
// (github.com/go-json-experiment/json, from Go 1.27 on encoding/json/v2): the
// older encoding/json does not know how to fill Extra.
//
// # Cards and 3-D Secure
//
// Card data never passes through your server or this package. The client-side
// payment element makes a [CardToken] in the buyer's browser, "pgct_…" for one
// use or "pgpm_…" for more, which goes into Token. A text that is no such token
// is refused unsent.
//
// Where the issuer wants the buyer to confirm, the transaction has a
// NextAction: give its ClientSecret to the payment element, which shows the
// challenge, and wait for the webhook.
//
// # Subscriptions
//
//	sub, err := client.Subscriptions.Create(ctx, gateway.SubscriptionParams{
//		CustomerID:     customer.ID,
//		Amount:         4990, // every month
//		Token:          token,
//		Interval:       gateway.IntervalMonth,
//		IdempotencyKey: "club-" + customer.ID, // the same in every retry
//	})
//	if err != nil {
//		return err
//	}
//	if sub.Status == gateway.SubscriptionIncomplete {
//		challenge, err := client.Subscriptions.PendingChallenge(ctx, sub.ID)
//		if err != nil {
//			return err
//		}
//		if challenge != nil {
//			show(challenge.ClientSecret.Reveal())
//		}
//	}
//
// The gateway charges by itself from then on and reports every renewal and
// every failure by webhook. A Pix Automatico has no token: its payer authorises
// with [Subscription.AuthorizationQRCode]. [SubscriptionStatus.Running] tells
// whether the customer has what was subscribed for.
//
// # Payouts
//
//	transfer, err := client.Transfers.Create(ctx, gateway.TransferParams{
//		PixKeyType:  gateway.PixKeyEmail,
//		PixKeyValue: "supplier@example.com",
//		Amount:      125000, // R$ 1250.00
//		ExternalRef: "invoice-99",
//	})
//	if err != nil {
//		return err
//	}
//
// A payout is paid later: its end, paid or error, comes by webhook. It can be
// canceled while it is pending or in analysis.
//
// # Checkout
//
//	link, err := client.CheckoutLinks.Create(ctx, gateway.CheckoutLinkParams{
//		Products: []gateway.CheckoutProduct{{ExternalID: "MUG-1", Name: "Mug", Price: 4990}},
//	})
//	if err != nil {
//		return err
//	}
//	redirect(link.URL)
//
// That is all that a hosted page needs. A page of your own opens a session with
// [CheckoutSessionsService.Open], comes back to it with Resume, and fills in
// buyer and payment method with Update; the session's token is a [Secret].
//
// # Webhooks
//
// The package github.com/gateway-go/gateway/webhook turns notifications into
// calls of your functions. It verifies them or reads the resource back, and
// neither loses nor doubles one. Webhooks are the primary channel; reading a
// resource is what is done where one was missed.
//
// # Testing
//
// The package github.com/gateway-go/gateway/mockserver is the gateway in
// memory: its Client method returns a Client that talks to it without a socket.
// It keeps every state and rule, moves its own clock, sends the webhooks, and
// loses responses on demand. The command mockserver/cmd/mockgateway is the same
// for other languages.
//
// # Logs and telemetry
//
// [WithLogger] logs each attempt with operation, status, duration and request
// id, never with a header, a body or an id of a resource. [OperationFromContext]
// gives an http.RoundTripper of yours the operation's name and path template
// for its spans.
package gateway
