package gatewayprobe

import "maps"

// experiments returns the experiment of each row that has one, by the row's id.
func experiments() map[string]experiment {
	all := map[string]experiment{}
	for _, section := range []map[string]experiment{
		dialectExperiments(), requestExperiments(), transactionExperiments(), transferExperiments(), customerExperiments(),
		subscriptionExperiments(), checkoutExperiments(), webhookExperiments(),
	} {
		maps.Copy(all, section)
	}
	return all
}

// reasons returns why each of the other rows can't be tested from outside.
func reasons() map[string]string {
	const (
		sdkClient = "it is about this project's client, not about the gateway"
		receiver  = "it is about this project's webhook receiver, not about the gateway"
		mock      = "it is about the mock gateway itself"
		testCards = "it is about the mock gateway's test tokens"
		page      = "it is about the mock gateway's checkout page"
		renewals  = "only renewals show it, and the probe can't wait for one"
		bank      = "it needs a payer with a bank account"
		endpoint  = "it needs a registered webhook endpoint: subscriptions have no notify_url"
		urls      = "testing it would replace the account's webhook URLs, which no route returns"
	)
	return map[string]string{
		"due-now":      "it is about the mock gateway's clock",
		"memory-limit": mock,
		"mock-limits":  mock,
		"clock-end":    "it is about the mock gateway's clock",
		"host-names":   mock,
		"slow-bodies":  "it protects the mock gateway; slow bodies would be an attack on a real one",

		"late-voucher":       bank,
		"card-tokens":        testCards,
		"chargeback-token":   testCards,
		"always-fails-token": testCards,
		"challenge-first":    "it is about the mock gateway's controls",

		"transfer-clock":  "it needs a bank, which decides how long a transfer takes",
		"opening-balance": "it needs a new account",

		"trial-authorised":         bank,
		"trial-will-end":           endpoint,
		"dunning-days":             renewals,
		"month-end":                renewals,
		"billing-zone":             renewals,
		"dunning-catch-up":         renewals,
		"dunning-changes":          renewals,
		"failing-tokens":           testCards,
		"subscription-event-order": endpoint,
		"first-debit-failed":       bank,

		"link-transaction": "it needs a buyer, who pays on the hosted page",
		"link-url":         page,
		"hosted-session":   page,
		"hosted-return":    page,
		"hosted-cancel":    page,
		"hosted-images":    page,
		"v1-integration":   urls,
		"v1-states":        "no route returns the state of a v1 payment",
		"v1-neighborhood":  sdkClient,
		"v1-urls":          urls,

		"signature-window":      receiver,
		"signatures":            receiver,
		"receiver-capacity":     receiver,
		"hung-handlers":         receiver,
		"receiver-pause":        receiver,
		"signing-key-length":    receiver,
		"receiver-statuses":     receiver,
		"receiver-ids":          receiver,
		"receiver-lenient":      receiver,
		"receiver-amounts":      receiver,
		"read-back":             receiver,
		"read-back-words":       receiver,
		"read-back-facts":       receiver,
		"receiver-retention":    receiver,
		"receiver-backoff":      receiver,
		"receiver-unhandled":    receiver,
		"receiver-conflict":     receiver,
		"receiver-memory":       receiver,
		"read-back-trial":       receiver,
		"event-order":           receiver,
		"reconciled-kinds":      receiver,
		"reconciled-references": receiver,
		"reconciled-repair":     receiver,
		"delivery-addresses":    "testing it would ask the gateway to call internal addresses",
		"delivery-rotation":     "it needs a registered webhook endpoint and a new secret for it",

		"client-attempts":         sdkClient,
		"client-retry-after":      sdkClient,
		"client-nothing-sent":     sdkClient,
		"client-judged":           sdkClient,
		"client-idempotency-keys": sdkClient,
		"client-identity":         sdkClient,
		"client-find":             sdkClient,
		"client-search":           sdkClient,
		"client-success-false":    sdkClient,
		"client-lenient":          sdkClient,
		"client-pages":            sdkClient,
		"client-answer-size":      sdkClient,
		"client-texts":            sdkClient,
		"client-minor-units":      sdkClient,
	}
}
