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
// [Credential] of the same one, and rejects what can't work: a public key, plain
// http to another host, a live key for a sandbox. [NewFromEnv] reads both from
// the environment. An [Option] holds for every call, a [RequestOption] for one.
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
// "captured". [TransactionsService.Wait] polls if no webhook can be received.
//
// Every params type has a Validate method with all limits of the interface, and
// every call runs it first: a [ValidationError] means that nothing was sent.
//
// # Errors
//
// A rejected call returns an [*Error] with the status, the gateway's code and
// message, the invalid fields and the request id for support. Every error
// matches exactly one of these sentinels, which says what to do:
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
// With [ErrNotSent] nothing was done: the gateway could not be reached, the
// credential could not be had, or the context ended first. [ErrServer] is also a
// read without a usable response; a write is [ErrOutcomeUnknown] then.
//
// If a 409 names the resource that has the reference, [Error.ResourceID] is
// its id. No error prints a key, a body or a query.
//
// # When the outcome is unknown
//
// A write whose response was lost (a timeout, a broken connection, a server
// error) may have been applied or not, and so may one whose repeat is rejected.
// Where the resource can be found by its reference, the client finds and returns
// it. What is left is [ErrOutcomeUnknown]; the [*OutcomeError] around it carries
// the operation, the reference, the idempotency key and, if a response named
// it, the id of the resource. Never send the write again with a new reference:
// that is how buyers are charged twice. Do one of these:
//
//   - Repeat the call with the same ExternalRef or IdempotencyKey, that of the
//     OutcomeError if the client made it. Nothing happens twice.
//   - Look it up: [TransactionsService.FindByExternalRef], or Get if there is
//     an id. For a refund, read the transaction and compare its RefundedAmount
//     with what it was before.
//   - Leave the order open until the webhook comes.
//
// # Idempotency keys
//
// A refund, a cancellation and an update have no reference. Some gateways honour
// the header Idempotency-Key instead: the interface document does not, so ask
// yours. With [WithIdempotencyKeys] each of these writes has a key and is
// repeated with it. Without it a refund of 500 that is repeated by hand after a
// lost response may refund 1000.
//
// [IdempotencyKey] gives a call a key of your own; stored before the call, it
// survives a crash of your process. Otherwise the client makes one, which
// [OutcomeError.IdempotencyKey] returns if all attempts were lost.
//
// # Retries
//
// The client repeats what is safe to repeat, three attempts by default, with
// backoff and Retry-After: reads, creates with a reference, which the gateway
// carries out only once, and any call that was certainly not carried out. Refunds,
// cancellations and updates are repeated otherwise only with idempotency keys.
// [NoRetry], [MaxAttempts] and [AttemptTimeout] change this for one call.
//
// Make the reference yourself and store it with the order before the first call,
// so that it survives a crash. If you give none the client makes one and
// returns it in [Response.Reference] and in every error.
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
// In a response null and "" are both "". Enums are strings, also those that this
// version does not know, see their Known methods; unknown members are in Extra. A
// result encodes to the members and values that the gateway sent, except that
// absent, null and "" may become each other, and a number or string takes the
// type that the interface has. Decode stored results with JSON v2
// (github.com/go-json-experiment/json, encoding/json/v2 from Go 1.27 on): the
// older encoding/json does not fill Extra.
//
// # Cards and 3-D Secure
//
// Card data never passes through your server or this package. The client-side
// payment element makes a [CardToken] in the buyer's browser, "pgct_…" for one
// use or "pgpm_…" for more; anything else in Token is rejected unsent.
//
// If the issuer wants the buyer to confirm, the transaction has a NextAction:
// give its ClientSecret to the payment element and wait for the webhook.
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
// The gateway charges by itself from then on and reports renewals and failures by
// webhook. A Pix Automatico has no token: its payer authorises with
// [Subscription.AuthorizationQRCode]. [SubscriptionStatus.Running] reports whether
// the customer has what was subscribed for.
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
// # Webhooks and tests
//
// Webhooks are the primary channel: package webhook verifies them, or reads the
// resource back, and neither loses nor doubles one. Package mockserver is the
// gateway in memory, with every state and rule and its own clock; its Client
// method returns a Client that talks to it without a socket. The command
// mockserver/cmd/mockgateway is the same for other languages.
//
// # Logs and telemetry
//
// [WithLogger] logs each attempt with operation, status, duration and request
// id, never a header, a body or an id of a resource. [WithObserver] reports calls and
// attempts for traces and metrics; the module contrib/otel is such an observer, for
// OpenTelemetry. [OperationFromContext] gives an http.RoundTripper the operation's name
// and path template.
package gateway
