// Package gateway is the client of a payment gateway for merchants:
// transactions by Pix, voucher and card, refunds, customers, payouts,
// subscriptions and hosted checkout.
//
// The package webhook receives the gateway's notifications, mockserver is the
// whole gateway in memory for tests, and legacy speaks the v1 surface.
//
// # Construct
//
// Create a [Client] once and use it from any number of goroutines:
//
//	client, err := gateway.New(baseURL, gateway.BearerToken(key))
//	if err != nil {
//		return err
//	}
//
// [New] takes the base URL of one environment, production or sandbox, and a
// [Credential] for it. It rejects combinations that can't work: a public key,
// plain http to another host, a live key for a sandbox. [NewFromEnv] reads both
// from the environment. An [Option] applies to every call, a [RequestOption] to
// one.
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
// The buyer pays in the bank's app, and a webhook reports it. Ship the goods
// when [Transaction.Settled] is true, not when the status is "paid": a card
// payment ends as "captured". If you can't receive webhooks,
// [TransactionsService.Wait] polls.
//
// Every params type has a Validate method that checks all limits of the
// interface. Every call runs it first, so a [ValidationError] means that
// nothing was sent.
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
// [ErrNotSent] means that nothing was done: the gateway could not be reached,
// there was no credential, or the context ended first. Without a usable response
// a read returns [ErrServer] and a write [ErrOutcomeUnknown].
//
// If a 409 names the resource that the reference belongs to, [Error.ResourceID]
// is its id. No error prints a key, a body or a query.
//
// # When the outcome is unknown
//
// A write whose response was lost (a timeout, a broken connection, a server
// error) may have been applied or not, and so may one whose repeat is rejected.
// If the resource can be found by its reference, the client finds and returns
// it. Otherwise the error is [ErrOutcomeUnknown]. The [*OutcomeError] around it
// has the operation, the reference, the idempotency key and, if a response
// named it, the id of the resource. Never send the write again with a new
// reference: that is how buyers are charged twice. Instead:
//
//   - Repeat the call with the same ExternalRef or IdempotencyKey; if the
//     client made it, the OutcomeError has it. Nothing happens twice.
//   - Look it up: [TransactionsService.FindByExternalRef], or Get if you have
//     an id. For a refund, read the transaction and compare its RefundedAmount
//     with what it was before.
//   - Leave the order open until the webhook arrives.
//
// # Idempotency keys
//
// A refund, a cancellation and an update have no reference. Some gateways honour
// the header Idempotency-Key instead: the interface document does not, so ask
// yours. With [WithIdempotencyKeys] each of these writes has a key and is
// repeated with it. Without it a refund of 500 that is repeated by hand after a
// lost response may refund 1000.
//
// [IdempotencyKey] sets a key of your own for one call. Store it before the
// call and it survives a crash of your process. Otherwise the client generates
// a key, and [OutcomeError.IdempotencyKey] returns it if all attempts were
// lost.
//
// # Retries
//
// The client retries what is safe to repeat, up to three attempts by default,
// with backoff and Retry-After: reads, creates with a reference, which the
// gateway applies only once, and any call that was certainly not applied. Other
// refunds, cancellations and updates are retried only with idempotency keys.
// [NoRetry], [MaxAttempts] and [AttemptTimeout] change this for one call.
//
// Create the reference yourself and store it with the order before the first
// call, so that it survives a crash. If you pass none, the client generates one
// and returns it in [Response.Reference] and in every error.
//
// # Paging
//
// List returns one page. All iterates over all items, Pages over pages. Neither
// sends a request before the loop begins or after it ends:
//
//	for tx, err := range client.Transactions.All(ctx, gateway.TransactionListParams{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(tx.ExternalRef, tx.Status)
//	}
//
// [Collect] returns a slice. A [Page] can be resumed later from its cursor.
//
// # Money
//
// Every amount is an int64 in the currency's smallest unit, cents for BRL;
// there are no floats. [FormatAmount] formats an amount for display. Zero never
// means "everything": a full refund is RefundParams{Full: true}.
//
// # Values
//
// A request member with its zero value is not sent. Members for which null or
// zero has its own meaning are of type [Opt]; create one with [Set] or [Null].
//
// In a response, null and "" are both read as "". Enums are strings and keep
// values that this version does not know; their Known methods report them.
// Unknown members are in Extra. A result encodes to the members and values that
// the gateway sent, except that absent, null and "" may become each other, and
// that a number or string takes the type that the interface defines. Decode
// stored results with JSON v2 (github.com/go-json-experiment/json, or
// encoding/json/v2 from Go 1.27 on); the older encoding/json does not fill
// Extra.
//
// # Cards and 3-D Secure
//
// Card data never passes through your server or this package. The client-side
// payment element creates a [CardToken] in the buyer's browser, "pgct_…" for
// one use or "pgpm_…" for several; anything else in Token is rejected before it
// is sent.
//
// If the issuer requires authentication, the transaction has a NextAction: pass
// its ClientSecret to the payment element and wait for the webhook.
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
// The gateway then charges every period automatically and reports renewals and
// failures by webhook. A Pix Automatico has no token: the payer authorizes it
// with [Subscription.AuthorizationQRCode]. [SubscriptionStatus.Running]
// reports whether the customer has access.
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
// A payout is paid later; a webhook reports whether it was paid or failed. It
// can be canceled while it is pending or in analysis.
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
// A hosted page needs no more than that. A page of your own opens a session
// with [CheckoutSessionsService.Open], resumes it with Resume, and sets the
// buyer and the payment method with Update. The session's token is a [Secret].
//
// # Webhooks and tests
//
// Webhooks are the primary channel. Package webhook verifies them or reads the
// resource back, and deduplicates and stores them. Package mockserver is the
// gateway in memory, with every state and rule and a virtual clock; its Client
// method returns a Client that reaches it without a socket. The command
// mockserver/cmd/mockgateway serves the same gateway to other languages.
//
// # Logs and telemetry
//
// [WithLogger] logs each attempt with operation, status, duration and request
// id, but no headers, bodies or resource ids. [WithObserver] reports calls and
// attempts for traces and metrics; the module contrib/otel is such an observer,
// for OpenTelemetry. [OperationFromContext] returns the operation's name and
// path template inside an http.RoundTripper.
package gateway
