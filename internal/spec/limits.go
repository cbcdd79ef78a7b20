package spec

// The limits of the interface document's Limits table, and below them those of
// its other tables and of docs/assumptions.md. Both edges are allowed values.
// Amounts are in cents, lengths in characters.
const (
	MinAmount            = 1
	MaxAmount            = 100_000_000 // of a transaction, a product, a subscription, a checkout link
	MinProducts          = 1
	MaxProducts          = 100
	MaxProductName       = 255
	MaxQuantity          = 999_999
	MaxSKU               = 255
	MinInstallments      = 1
	MaxInstallments      = 12
	MinInterestRate      = 0
	MaxInterestRate      = 100
	MaxNotifyURL         = 2048
	MinState             = 2
	MaxState             = 3
	MinSubscriptionToken = 6
	MinIntervalCount     = 1
	MaxIntervalCount     = 365
	MinRetryOffsets      = 1
	MaxRetryOffsets      = 10
	MinRetryOffset       = 1
	MaxRetryOffset       = 30
	MaxInformations      = 50
	MinIdempotencyKey    = 1
	MaxIdempotencyKey    = 255
	MaxLinkTitle         = 255
	MinLinkProducts      = 1
	MaxLinkProducts      = 25
	MinSlug              = 3
	MaxSlug              = 255
	MaxCustomerPage      = 1_000_000
	MaxCustomerPageSize  = 100
)

// Limits that the interface document does not state.
const (
	MaxPageSize            = 100 // cursor lists
	MaxRefundReason        = 500
	MaxTrackingCode        = 255
	MaxTrackingURL         = 255
	MaxTrackingCompany     = 64
	MinLiveTransferAmount  = 1000
	MaxSafeAmount          = 1<<53 - 1 // of a payout and of a v1 payment: what every JSON reader keeps exactly
	MaxTransferDescription = 140
	MaxTransferReference   = 100
	MaxTransferOrigin      = 50
	MinPixKey              = 1
	MaxPixKey              = 77
	MaxCancelReason        = 250
	MaxBillingDay          = 31
	MaxPixComment          = 140
	MinLegacyExpiration    = 1         // seconds
	MaxLegacyExpiration    = 1<<31 - 1 // seconds, 68 years: what a duration in nanoseconds still holds
	MaxSplitPercent        = 100
	MaxLiveExternalID      = 255  // of a checkout link's product
	MaxLiveDescription     = 2000 // of a checkout link's product
)
