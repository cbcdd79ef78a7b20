// Package gateway is a client for a payment gateway: Pix, voucher and card
// transactions, refunds, customers, payouts, subscriptions and hosted checkout.
//
// Package webhook receives the gateway's notifications, package pix draws the
// QR code of a Pix charge, package mockserver is an in-memory gateway for tests,
// and package legacy calls the v1 endpoints.
//
// # Create a client
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
// plain http to a remote host, a production key for the sandbox. [NewFromEnv]
// reads both from the environment. An [Option] applies to every call, a
// [RequestOption] to one.
//
// # First payment
//
//	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
//		ExternalRef: "order-17",
//		Amount:      4990, // R$ 49.90
//		Method:      gateway.Pix,
//		Buyer: gateway.BuyerParams{
//			Name: "Ana Souza", Email: "ana@example.com",
//			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
//		},
//		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
//	})
//	if err != nil {
//		return err
//	}
//	show(tx.Pix.QRCode)
//
// The buyer pays in a banking app, and a webhook reports the payment. Ship the
// goods when [Transaction.Settled] returns true, not when the status is "paid":
// a paid card transaction can be "captured". If you can't receive webhooks,
// poll with [TransactionsService.Wait].
//
// Every params type has a Validate method that checks the rules and limits of
// the interface document, the specification of the gateway's HTTP API. Every
// call runs it first, so a [ValidationError] means that nothing was sent.
//
// # Errors
//
// A rejected call returns an [*Error] with the status, the gateway's code and
// message, the invalid fields and the request id for support. Every error
// matches one of these sentinels, which tells you what to do:
//
//	switch {
//	case errors.Is(err, gateway.ErrOutcomeUnknown):
//		return "look it up" // the write may have been applied: resolve the outcome
//	case errors.Is(err, gateway.ErrNotSent):
//		return "try again" // nothing reached the gateway
//	case errors.Is(err, gateway.ErrDuplicate):
//		return "read the first one" // the reference was used before
//	case errors.Is(err, gateway.ErrConflict):
//		return "read the resource" // its state does not allow the call
//	case errors.Is(err, gateway.ErrValidation):
//		return "fix the request" // err names the fields
//	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, gateway.ErrRetired):
//		return "stop" // the resource does not exist, or the endpoint is retired
//	case errors.Is(err, gateway.ErrUnauthorized), errors.Is(err, gateway.ErrForbidden):
//		return "fix the key" // it is invalid or lacks the permission
//	case errors.Is(err, gateway.ErrRateLimited), errors.Is(err, gateway.ErrServer):
//		return "try later" // the client has already tried a few times
//	}
//
// A duplicate matches [ErrConflict] too, so check for [ErrDuplicate] first.
// [ErrNotSent] means that nothing was done: the gateway could not be reached,
// there was no credential, or the context ended first. If no usable response
// arrives, a read returns [ErrServer] and a write [ErrOutcomeUnknown].
//
// If a 409 names the resource that the reference belongs to, [Error.ResourceID]
// is its id. Error messages never contain an API key, a request body or a
// query.
//
// # When the outcome is unknown
//
// If the response to a write is lost (a timeout, a broken connection, a server
// error), the write may or may not have been applied. A rejected retry does not
// settle this, because the first attempt may have caused the rejection. If the
// client finds the resource by its reference, it returns the resource.
// Otherwise the error is an [*OutcomeError], which matches [ErrOutcomeUnknown].
// It has the operation, the reference, the idempotency key and, if a response
// named it, the id of the resource. Never send the write again with a new
// reference: that is how buyers are charged twice. Instead:
//
//   - Repeat the call with the same params and [RepeatOf], which takes the error,
//     so that it is applied only once and returns the first resource. The repeat
//     has the same reference or key, even if the client generated it. In another
//     process pass the stored reference and [FirstSent].
//   - Look the resource up with [TransactionsService.FindByExternalRef], or
//     with Get if you have an id. For a refund, read the transaction and compare
//     its RefundedAmount with the amount before the refund.
//   - Don't conclude too early that nothing happened: a request whose response
//     was lost may still be applied minutes later.
//   - Leave the order open until the webhook arrives.
//
// # Idempotency keys
//
// Refunds and cancellations have no reference. Some gateways support the
// Idempotency-Key header for them. The interface document does not mention it, so
// check with your gateway first. With [WithIdempotencyKeys] the client sends a key
// with each of these writes and retries them with it. Without a key, a refund of
// 500 that you repeat after a lost response may refund 1000.
//
// [IdempotencyKey] sets a key of your own for one call. Store it before the
// call so that it survives a crash of your process. Otherwise the client
// generates a key, and [OutcomeError.IdempotencyKey] has it if the outcome is
// unknown.
//
// # Retries
//
// The client retries calls that are safe to repeat: reads, creates with a
// reference, which the gateway applies only once, SetSandboxStatus and
// UpdateDelivery without IfMatch, which set the same values again, and any call
// that was certainly not applied. Any other write that may have been applied,
// such as a refund or a cancellation, is retried only with an idempotency key. By
// default a call makes up to three attempts, with exponential backoff, and
// respects Retry-After. [MaxAttempts] and [AttemptTimeout] change this
// for one call.
//
// Choose the reference yourself and store it with the order before the first
// call, so that it survives a crash. If you create a transaction, a transfer or
// a subscription without one, the client generates it and returns it in
// [Response.Reference], [Error.Reference] and [OutcomeError.Reference].
//
// # Paging
//
// List returns one page. All iterates over all items, and Pages over all pages.
// Neither sends a request before the loop begins or after it ends:
//
//	for tx, err := range client.Transactions.All(ctx, gateway.TransactionListParams{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(tx.ExternalRef, tx.Status)
//	}
//
// [Collect] returns a slice. To resume a list later, store a [Page]'s cursor.
//
// # Money
//
// Every amount is an int64 in the currency's smallest unit, cents for BRL;
// there are no floats. [FormatAmount] formats an amount for display. Zero never
// means "everything": a full refund is RefundParams{Full: true}.
//
// # Values
//
// Request fields with their zero value are not sent. Fields for which null or
// zero has its own meaning are of type [Opt]; use [Some] and [Clear].
//
// In a response, null and "" both decode to "". Enums are strings and keep
// values that this version does not define. A resource's Raw is its JSON as
// received, which also has the fields that this version does not know. A result
// encodes to the known fields, with the values that the gateway sent, with two
// exceptions: absent, null and "" are interchangeable, and a number sent as a
// string, or the reverse, gets the type that the interface defines. Store Raw
// beside the result if you need the rest.
//
// # Cards and 3-D Secure
//
// Card data never passes through your server or this package. The client-side
// payment element creates a [CardToken] in the buyer's browser: "pgct_…" is
// single-use, "pgpm_…" reusable. Anything else in Token is rejected before it is
// sent.
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
// failures by webhook. A Pix Automatico subscription has no token: the payer
// authorizes it by scanning [Subscription.AuthorizationQRCode].
// [SubscriptionStatus.Running] reports whether the customer has access.
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
// Payouts are asynchronous: a webhook reports whether one was paid or failed. A
// payout can be canceled while it is pending or in analysis.
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
// A hosted page needs nothing else. If you render the page yourself, open a
// session with [CheckoutSessionsService.Open], resume it with Resume, and set
// the buyer and the payment method with Update. The session token is a
// [Secret].
//
// # Webhooks and tests
//
// Webhooks are the primary way to learn the result of a payment. Package webhook
// verifies each event by its signature or by reading the resource back,
// deduplicates it and stores it. Package mockserver is an in-memory gateway with
// every state and rule and a virtual clock; its Client method returns a Client
// that calls it without opening a socket. The command mockserver/cmd/mockgateway
// serves the same gateway over HTTP, for clients in any language.
//
// # Logs and telemetry
//
// [WithLogger] logs each attempt with operation, status, duration and request
// id, but no headers, bodies or resource ids. [WithObserver] reports calls and
// attempts for traces and metrics; the module contrib/otel has an observer for
// OpenTelemetry. In an http.RoundTripper, [OperationFromContext] returns the
// operation's name and path template.
package gateway
