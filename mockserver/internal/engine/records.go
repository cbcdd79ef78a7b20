package engine

import "time"

// The resources in their stored form: amounts in cents, times in UTC, the zero time
// for "not yet" and "" for null. Packages httpapi and deliver convert them to JSON.

// Row holds the position and the version of a resource. The store sets it.
type Row struct {
	Seq uint64 // creation order among the account's resources of this kind, from 1
	Rev uint64 // counts the resource's versions, from 1
}

// Stamp gives the store access to the Row of a resource.
func (r *Row) Stamp() *Row { return r }

// Transaction is a payment.
type Transaction struct {
	Row

	ID             string
	ExternalRef    string
	Amount         int64 // what the buyer is charged
	SettledAmount  int64 `json:",omitempty"` // what the interface reports as the amount; 0 means Amount
	Currency       string
	Method         string
	Status         string
	Buyer          *Buyer
	Installments   int
	Products       []Product
	Metadata       string
	Traceable      bool
	IPAddress      string
	NotifyURL      string
	Informations   []Information
	PaidAmount     int64
	RefundedAmount int64
	FeeAmount      int64 // the gateway's fee
	PaidAt         time.Time
	Pix            *Pix
	Voucher        *Voucher
	NextAction     *NextAction
	Delivery       *Delivery
	Card           *Card
	SubscriptionID string // for a subscription's charge
	SessionID      string // for a checkout session's payment
	Legacy         *LegacyPayment
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// Buyer is the person who pays. Its id is that of a customer, or its own.
type Buyer struct {
	ID        string
	Name      string
	Email     string
	Phone     string
	BirthDate string
	Document  *Document
	Address   *Address
}

// Document is a personal or company document.
type Document struct{ Type, Number string }

// Address is a postal address.
type Address struct {
	Street, Number, Complement, Neighborhood, City, State, ZipCode, Country string
}

// Product is one line item.
type Product struct {
	Name     string
	Price    int64
	Quantity int
	Tangible bool
	SKU      string
}

// Information is a key and a value.
type Information struct{ Key, Value string }

// Pix is the stored part of a Pix payment. For the code that the payer sees, see
// [Transaction.QRCode].
type Pix struct {
	ExpirationDate time.Time
	EndToEndID     string
}

// Voucher is a local payment instruction.
type Voucher struct {
	Barcode        string
	DigitableLine  string
	ExpirationDate time.Time
}

// NextAction is a pending 3-D Secure challenge; only an open transaction has
// one.
type NextAction struct {
	ChallengeSessionID string
	ClientSecret       string
	ExpiresAt          time.Time
}

// Delivery is the tracking of physical goods.
type Delivery struct {
	Status, Code, URL, Company string
	LastUpdate                 time.Time
}

// Card is the stored part of a card: never its number.
type Card struct {
	Token string
	Last4 string
}

// Customer is a reusable buyer profile.
type Customer struct {
	Row
	Buyer

	ExternalRef string
	Status      string
	IPAddress   string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Transfer is a Pix payout.
type Transfer struct {
	Row

	ID            string
	Amount        int64
	Fee           int64
	PixKey        string
	PixKeyType    string
	Status        string
	Description   string
	ExternalRef   string
	Origin        string
	NotifyURL     string
	ProcessedAt   time.Time
	TransferredAt time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time
}
