// Package pix reads and writes Pix copy-paste codes, and draws them as QR codes.
//
// A gateway returns the code of a charge as gateway.PixPayment.QRCode, and the
// code with which a payer authorizes a Pix Automatico as the subscription's
// AuthorizationQRCode. Show a code both as text to copy and as a picture:
//
//	picture, err := pix.Draw(charge.Pix.QRCode)
//	if err != nil {
//		return err
//	}
//	page.QR = template.HTML(picture.SVG())
//
// [Decode] checks a code and returns its content: the key or URL, the amount,
// the recurrence of a Pix Automatico. Payers confirm what their bank shows, so a
// shop can use it to check a code before it shows it.
//
// The format is the BR Code of the Central Bank of Brazil, a profile of EMV's
// merchant-presented QR codes. The package makes no requests: what is behind the
// URL of a code, such as the amount of a charge, only the payer's bank reads.
package pix
