package engine

// LegacyPayment is what a v1 payment has beyond its transaction.
type LegacyPayment struct {
	ExternalID  string // transaction.externalId of the request; no reference, it may repeat
	Description string
	DueDate     string
	Splits      []LegacySplit

	// A state set by control stands as long as the transaction is in the state
	// it was set in; after that the v1 state follows the transaction again.
	Label    string
	LabelFor string
}

// LegacySplit is a recipient's share of a v1 payment: kept, without effect.
type LegacySplit struct {
	PixKey, PixKeyType, Document, ExternalID string

	Percent float64
	Amount  int64
}

// Integration is where a v1 account gets its webhooks.
type Integration struct {
	ID            string
	WebhookURL    string // of every family
	PixWebhookURL string // of Pix transactions and payouts
	Status        string
}
