package engine

// LegacyPayment is the additional data of a v1 payment.
type LegacyPayment struct {
	ExternalID  string // transaction.externalId of the request; not a reference, it may repeat
	Description string
	DueDate     string
	Splits      []LegacySplit

	// A state set by a control stays while the transaction keeps its state;
	// after that the v1 state follows the transaction again.
	Label    string
	LabelFor string
}

// LegacySplit is a recipient's share of a v1 payment: stored, without effect.
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
