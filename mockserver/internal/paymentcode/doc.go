// Package paymentcode makes what a payer pays with: Pix copy-paste codes and
// boletos. They have the real forms and right
// check digits, so that a merchant's own checks pass on them, and they can't be
// paid: the Pix payload host is under .invalid and the boleto's bank is 999.
package paymentcode
