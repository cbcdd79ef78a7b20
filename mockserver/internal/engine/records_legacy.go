package engine

// LegacyPayment holds the data of a v1 payment that other payments do not have.
type LegacyPayment struct {
	ExternalID  string // transaction.externalId of the request; not an idempotency key, it may repeat
	Description string
	DueDate     string
	Splits      []LegacySplit

	// Label is a v1 state that a control has set. It applies while the
	// transaction's state is LabelFor; after that, the v1 state follows the
	// transaction again.
	Label    string
	LabelFor string
}

// LegacySplit is a recipient's share of a v1 payment: stored, without effect.
type LegacySplit struct {
	PixKey, PixKeyType, Document, ExternalID string

	Percent float64
	Amount  int64
}

// Integration holds the webhook URLs of a v1 account.
type Integration struct {
	ID            string
	WebhookURL    string // for events of every family
	PixWebhookURL string // for events of Pix transactions and payouts
	Status        string
}
