package books

import "github.com/gateway-go/gateway"

// stage is the position of a status in the life of a transaction or transfer. It
// orders readings if neither updated_at nor the amounts do.
type stage uint8

const (
	waiting stage = iota + 1
	ended         // without payment; an expired voucher can still be paid
	paidPartly
	paidFully
	refundedPartly
	refundedFully
	disputeOpened
	disputeContested
	disputeLost
	chargedBack
)

// pays reports whether a transaction at this stage was paid, in full or in part.
func (s stage) pays() bool { return s >= paidPartly }

// disputed reports whether the payment may be lost or is lost. Contesting a dispute
// does not bring the money back.
func (s stage) disputed() bool { return s >= disputeOpened }

// transactionStages says what the status of a transaction proves.
var transactionStages = [...]struct {
	status gateway.TransactionStatus
	stage  stage
}{
	{gateway.TransactionPending, waiting},
	{gateway.TransactionWaitingPayment, waiting},
	{gateway.TransactionProcessing, waiting},
	{gateway.TransactionProcessed, waiting},
	{gateway.TransactionAuthorized, waiting},
	{gateway.TransactionThreeDSRequired, waiting},

	{gateway.TransactionRefused, ended},
	{gateway.TransactionCanceled, ended},
	{gateway.TransactionExpired, ended},

	{gateway.TransactionPartiallyPaid, paidPartly},
	{gateway.TransactionPaid, paidFully},
	{gateway.TransactionCaptured, paidFully},
	{gateway.TransactionPartiallyRefunded, refundedPartly},
	{gateway.TransactionRefunded, refundedFully},

	{gateway.TransactionMED, disputeOpened},
	{gateway.TransactionInProtest, disputeContested},
	{gateway.TransactionPreChargedback, disputeLost},
	{gateway.TransactionChargedback, chargedBack},
}

// stageOf returns the stage of a status, 0 if this version does not know it.
func stageOf(s gateway.TransactionStatus) stage {
	for _, row := range transactionStages {
		if row.status == s {
			return row.stage
		}
	}
	return 0
}

// Pays reports whether a transaction with this status was paid, in full or in part.
func Pays(s gateway.TransactionStatus) bool { return stageOf(s).pays() }

// transferRow says what the status of a transfer means.
type transferRow struct {
	status gateway.TransferStatus
	state  State
	stage  uint8 // orders readings if updated_at does not
	out    bool  // the amount has left the balance
	vague  bool  // the gateway itself does not know more
}

// transferRows says what the status of a transfer means.
var transferRows = [...]transferRow{
	{gateway.TransferUnknown, Pending, 1, true, true},
	{gateway.TransferScheduled, Pending, 2, true, false},
	{gateway.TransferPending, Pending, 2, true, false},
	{gateway.TransferInAnalysis, Pending, 3, true, false},
	{gateway.TransferProcessing, Pending, 4, true, false},
	{gateway.TransferPaid, Paid, 5, true, false},
	{gateway.TransferError, Failed, 5, false, false},
	{gateway.TransferRejected, Failed, 5, false, false},
	{gateway.TransferCancelled, Canceled, 5, false, false},
}

// transferRowOf returns the row of a status, or nil if this version does not know it.
func transferRowOf(s gateway.TransferStatus) *transferRow {
	for i := range transferRows {
		if transferRows[i].status == s {
			return &transferRows[i]
		}
	}
	return nil
}

// TransferBehind is [Behind] for a transfer.
func TransferBehind(read, announced gateway.TransferStatus) bool {
	r, a := transferRowOf(read), transferRowOf(announced)
	return r != nil && a != nil && r.stage < a.stage
}

// Behind reports whether a status is earlier in the life of a transaction than another
// one that was announced: a reading with it is older than the announcement.
func Behind(read, announced gateway.TransactionStatus) bool {
	r, a := stageOf(read), stageOf(announced)
	return r != 0 && r < a
}
