package gatewayprobe

import (
	"maps"
	"strings"
)

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
	all := map[string]string{}
	for _, group := range []struct{ reason, rows string }{
		{"it is about this project's client, not about the gateway", `
			v1-neighborhood client-attempts client-retry-after client-outage client-nothing-sent client-judged client-idempotency-keys
			client-identity client-find client-search client-success-false client-origin client-in-progress settled-amount client-lenient client-members client-unknown-times client-pages client-answer-size
			client-texts client-minor-units`},
		{"it is about this project's webhook receiver, not about the gateway", `
			signature-window signatures receiver-capacity hung-handlers receiver-pause signing-key-length receiver-statuses
			receiver-ids receiver-lenient receiver-amounts read-back read-back-words read-back-facts event-forms receiver-retention
			receiver-backoff receiver-unhandled receiver-conflict receiver-memory read-back-trial event-ids event-order reconciled-kinds
			reconciled-references reconciled-repair`},
		{"it is about this project's outbox, not about the gateway", `
			outbox-reads outbox-sends outbox-search outbox-keys outbox-accounts`},
		{"only payments, disputes and payouts of a live account show it", `
			books-order books-paid-amount books-fee books-dispute books-payout books-periods
			merchant-absence merchant-final
			merchant-payouts merchant-links merchant-sales`},
		{"a probe can't prove that no request is ever applied later", "outbox-settle"},
		{"it is about the mock gateway itself", "memory-limit mock-limits host-names"},
		{"it is about the mock gateway's clock", "due-now clock-end"},
		{"it is about the mock gateway's controls", "challenge-first coded-titles shapes"},
		{"it is about the mock gateway's test tokens", "card-tokens authorized-token chargeback-token always-fails-token failing-tokens"},
		{"it is about the mock gateway's checkout page", "link-url hosted-session hosted-return hosted-cancel hosted-images"},
		{"it protects the mock gateway; slow bodies would be an attack on a real one", "slow-bodies"},
		{"it needs a payer with a bank account", "late-voucher trial-authorised first-debit-failed debit-canceled dispute"},
		{"it needs a bank, which decides how long a transfer takes", "transfer-clock"},
		{"only the refund of a payment that is 90 days old shows it", "pix-refund-limit"},
		{"testing it would revoke the key", "key-revocation"},
		{"it needs a new account", "opening-balance"},
		{"it needs a registered webhook endpoint: subscriptions have no notify_url", "trial-will-end subscription-event-order"},
		{"only renewals show it, and the probe can't wait for one", "dunning-days pix-retries month-end dunning-catch-up dunning-changes"},
		{"it needs a buyer, who pays on the hosted page", "link-transaction"},
		{"testing it would replace the account's webhook URLs, which no route returns", "v1-integration v1-urls"},
		{"no route returns the state of a v1 payment", "v1-states"},
		{"testing it would ask the gateway to call internal addresses", "delivery-addresses"},
		{"it needs a registered webhook endpoint and a new secret for it", "delivery-rotation"},
	} {
		for row := range strings.FieldsSeq(group.rows) {
			all[row] = group.reason
		}
	}
	return all
}
