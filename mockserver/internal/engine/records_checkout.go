package engine

import "time"

// Link is a hosted checkout page that sells products or a bare amount.
type Link struct {
	Row

	ID             int64
	Slug           string
	Status         string // active, exhausted, expired, inactive
	Title          string
	Description    string
	Currency       string
	Amount         int64 // of a link without items
	Items          []LinkItem
	MaxUses        int // 0 means no limit
	UsedCount      int
	ExpiresAt      time.Time
	SuccessURL     string
	CancelURL      string
	PaymentMethods []string
	Metadata       string // a JSON object; "" is null
	PublicToken    string
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// LinkItem is one line item of a Link: a catalog product.
type LinkItem struct {
	ID        int64
	ProductID int64
	Quantity  int
}

// CatalogProduct is a product that checkout links sell. Creating a link creates
// or updates its products.
type CatalogProduct struct {
	Row

	ID           int64
	ExternalID   string // "" means none: such a product is never updated
	Name         string
	Description  string
	Type         string // physical or digital
	Currency     string // "" means that of the link
	Price        int64
	ComparePrice int64 // 0 is null
	ImageURL     string
	Metadata     string // a JSON object; "" is null
}

// Session is one buyer's visit to a Link.
type Session struct {
	Row

	ID            string
	Token         string
	Slug          string
	Status        string // open, ready, processing, completed, expired
	Buyer         *Buyer
	Method        string // selected by the buyer; "" means none yet
	MethodAt      time.Time
	TransactionID string
	Attempts      []Attempt `json:",omitempty"` // payments that the buyer has started, oldest first
	ExpiresAt     time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Attempt is a payment that a buyer has started.
type Attempt struct{ Key, TransactionID string }
