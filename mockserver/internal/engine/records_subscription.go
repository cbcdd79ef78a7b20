package engine

import "time"

// Subscription is a recurring charge of a customer.
type Subscription struct {
	Row

	ID               string
	Customer         *Buyer
	Status           string
	PaymentMethod    string // credit_card or pix_automatic
	Amount           int64
	Currency         string
	Interval         string // day, week or month
	IntervalCount    int
	BillingDay       int // of the month, in the billing zone; 0 means that of the anchor
	FailurePolicy    string
	RetryOffsetsDays []int // as sent
	Card             *Card
	Authorization    *Authorization // of a Pix Automatico
	Comment          string         // on a Pix Automatico's authorization
	Metadata         string         // a JSON object; "" is null
	Informations     []Information
	Products         []Product
	IdempotencyKey   string
	BodyHash         string       // of the create request, to distinguish a repeat from another request
	ChargeIDs        []string     // its transactions, oldest first
	Latest           *Transaction // the latest transaction, in its current version

	TrialEnd           time.Time
	Anchor             time.Time // the start of the first period, from which all boundaries count
	Cycle              int       // periods billed so far
	CurrentPeriodStart time.Time
	CurrentPeriodEnd   time.Time

	Attempt       int // number of attempts to charge the current period
	FirstFailedAt time.Time
	NextRetryAt   time.Time
	FailNext      int  // how many of the next charges fail; set by a control
	DebitCanceled bool // whether the payer of a Pix Automatico has canceled the next debit

	CancelAtPeriodEnd  bool
	CanceledAt         time.Time
	CancellationReason string
	CreatedAt          time.Time
	UpdatedAt          time.Time
}

// Authorization is a payer's consent to a Pix Automatico.
type Authorization struct {
	Status         string // pending, approved, rejected, expired, canceled
	QRCode         string
	ExpirationDate time.Time
}
