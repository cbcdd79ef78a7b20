package engine

import "github.com/gateway-go/gateway/mockserver/internal/paymentcode"

// What a payer is shown beside the resource is made of it each time: a million
// of these texts would double an account's memory.

// payPage is where vouchers and receipts would be; nothing is served there.
const payPage = "https://pay.mock.invalid/"

// VoucherInstructions is what a voucher tells its payer.
const VoucherInstructions = "Pay in any bank or with its app until the due date."

// QRCode returns the Pix copy-paste text of t. A Pix Automatico's debit, which
// its payer does not act upon and which does not expire, has none.
func (t *Transaction) QRCode() string {
	if t.Pix == nil || t.Pix.ExpirationDate.IsZero() {
		return ""
	}
	return paymentcode.ChargeCode(t.ID, t.Amount)
}

// VoucherURL returns where the voucher of t can be seen.
func (t *Transaction) VoucherURL() string { return payPage + "vouchers/" + t.ID }

// ReceiptURL returns where the receipt of t can be seen, "" before the payment.
func (t *Transaction) ReceiptURL() string {
	if t.PaidAmount == 0 {
		return ""
	}
	return payPage + "receipts/" + t.ID
}
