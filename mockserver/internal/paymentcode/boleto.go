package paymentcode

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The lengths of a boleto's two forms, and of the part of both that is the
// issuing bank's own.
const (
	barcodeLength = 44
	lineLength    = 47
	freeLength    = 25
)

// boletoBank is a bank code that no bank has.
const boletoBank = "999"

// Boleto is a voucher in reais.
type Boleto struct {
	Due    time.Time // counts as the day it is in Brasília
	Amount int64     // cents, at most ten digits
	Free   string    // the bank's own 25 digits; padded with zeros on the left
}

// Barcode returns the 44 digits of the boleto's bar code: bank, currency,
// check digit, due factor, amount, free field.
func (b Boleto) Barcode() string {
	free := digits(b.Free)
	free = strings.Repeat("0", freeLength) + free
	head := boletoBank + "9"
	tail := fmt.Sprintf("%04d%010d", DueFactor(b.Due), b.Amount%1e10) + free[len(free)-freeLength:]
	return head + string(mod11(head+tail)) + tail
}

// Line returns the 47 digits that a payer types: the bar code's, in another
// order, with a check digit for each of the first three fields.
func (b Boleto) Line() string { return line(b.Barcode()) }

// LineOfBarcode returns the digitable line of a bar code, whose own check digit
// must be right.
func LineOfBarcode(barcode string) (string, error) {
	if len(barcode) != barcodeLength || digits(barcode) != barcode {
		return "", fmt.Errorf("bar code: %d digits are needed", barcodeLength)
	}
	if mod11(barcode[:4]+barcode[5:]) != barcode[4] {
		return "", errors.New("bar code: wrong check digit")
	}
	return line(barcode), nil
}

// BarcodeOfLine returns the bar code of a digitable line, written with or
// without its points and spaces. All four check digits must be right.
func BarcodeOfLine(text string) (string, error) {
	s := strings.NewReplacer(".", "", " ", "").Replace(text)
	if len(s) != lineLength || digits(s) != s {
		return "", fmt.Errorf("digitable line: %d digits are needed", lineLength)
	}
	barcode := s[0:4] + s[32:47] + s[4:9] + s[10:20] + s[21:31]
	if line(barcode) != s {
		return "", errors.New("digitable line: wrong check digit in one of the first three fields")
	}
	if _, err := LineOfBarcode(barcode); err != nil {
		return "", errors.New("digitable line: wrong check digit in the fourth field")
	}
	return barcode, nil
}

// FormatLine writes a digitable line as it is printed:
// 00190.50095 40144.816069 06809.350314 3 37370000000100.
func FormatLine(s string) string {
	if len(s) != lineLength {
		return s
	}
	return s[0:5] + "." + s[5:10] + " " + s[10:15] + "." + s[15:21] + " " +
		s[21:26] + "." + s[26:32] + " " + s[32:33] + " " + s[33:]
}

// line moves the digits of a valid bar code.
func line(barcode string) string {
	one, two, three := barcode[0:4]+barcode[19:24], barcode[24:34], barcode[34:44]
	return one + string(mod10(one)) + two + string(mod10(two)) + three + string(mod10(three)) +
		barcode[4:19]
}

// The due factor counts days from its base and has four digits: the day after
// 9999, 22 February 2025, is 1000 again, and so on every 9000 days.
const (
	maxFactor   = 9999
	firstFactor = 1000
	factorCycle = maxFactor - firstFactor + 1
)

// DueFactor returns the due factor of the day that t is in Brasília, and 0,
// "no due date", for a day before the count began.
func DueFactor(t time.Time) int {
	// Brazil has kept one time all year since 2019; a fixed zone also works
	// where no time zone database is installed.
	year, month, day := t.In(time.FixedZone("BRT", -3*60*60)).Date()
	base := time.Date(1997, time.October, 7, 0, 0, 0, 0, time.UTC)
	days := int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Sub(base) / (24 * time.Hour))
	switch {
	case days < 0:
		return 0
	case days <= maxFactor:
		return days
	default:
		return firstFactor + (days-firstFactor)%factorCycle
	}
}

// mod10 is the check digit of a field of the digitable line: weights 2, 1 from
// the right, the digits of each product summed.
func mod10(s string) byte {
	sum := 0
	for i := range len(s) {
		p := int(s[len(s)-1-i]-'0') * (2 - i%2)
		sum += p/10 + p%10
	}
	return byte('0' + (10-sum%10)%10)
}

// mod11 is the check digit of the bar code: weights 2 to 9 from the right, over
// and over; where it would be 0, 10 or 11 it is 1.
func mod11(s string) byte {
	sum := 0
	for i := range len(s) {
		sum += int(s[len(s)-1-i]-'0') * (2 + i%8)
	}
	dv := 11 - sum%11
	if dv > 9 {
		dv = 1
	}
	return byte('0' + dv)
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
