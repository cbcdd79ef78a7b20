package engine

import "github.com/gateway-go/gateway/mockserver/internal/paymentcode"

// The codes that a payer sees are derived from the resource on demand: storing
// a million of them would double an account's memory.

// payPage is the base URL of vouchers and receipts, which do not exist.
const payPage = "https://pay.mock.invalid/"

// VoucherInstructions is a voucher's text for its payer.
const VoucherInstructions = "Pay at any bank or in its app by the due date."

// QRCode returns the Pix copy-paste code of t. A Pix Automatico's debit has none:
// its payer does not have to act, and it does not expire.
func (t *Transaction) QRCode() string {
	if t.Pix == nil || t.Pix.ExpirationDate.IsZero() {
		return ""
	}
	return paymentcode.ChargeCode(t.ID, t.Amount)
}

// VoucherURL returns where the voucher of t can be seen.
func (t *Transaction) VoucherURL() string { return payPage + "vouchers/" + t.ID }

// ReceiptURL returns where the receipt of t can be seen, or "" before the payment.
func (t *Transaction) ReceiptURL() string {
	if t.PaidAmount == 0 {
		return ""
	}
	return payPage + "receipts/" + t.ID
}
