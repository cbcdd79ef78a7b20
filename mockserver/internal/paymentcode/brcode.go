// Package paymentcode generates Pix copy-paste codes and boletos. They have the
// real format and valid check digits, so a merchant's own checks pass, but they
// can't be paid: the Pix host is under .invalid and the boleto's bank is 999.
package paymentcode

import "github.com/gateway-go/gateway/pix"

// host is the server from which the payer's bank would fetch a charge. It does
// not exist.
const host = "pix.mock.invalid"

// ChargeCode returns the Pix copy-paste code of the charge with the given id.
func ChargeCode(id string, cents int64) string {
	return encode(pix.Code{URL: host + "/v2/" + id, Amount: cents, Once: true})
}

// ConsentCode returns the code with which a payer authorizes the Pix Automatico
// (a recurring debit) with the given id. With an amount, the payer also pays the
// first charge (journey 3); if cents is 0, there is none yet (journey 2).
func ConsentCode(id string, cents int64) string {
	code := pix.Code{RecurrenceURL: host + "/rec/" + id}
	if cents > 0 {
		code.URL, code.Amount, code.Once = host+"/v2/"+id, cents, true
	}
	return encode(code)
}

func encode(code pix.Code) string {
	code.Name, code.City = "GATEWAY MOCK", "SAO PAULO"
	text, err := code.Encode()
	if err != nil { // an id is at most 36 characters long
		panic(err)
	}
	return text
}
