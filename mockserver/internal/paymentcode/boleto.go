package paymentcode

import (
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// Barcode returns the 44 digits of a boleto in reais: the bank (999, which no bank
// has), the currency, the check digit, the due factor, the last ten digits of the
// amount, and the last 25 digits of free.
func Barcode(due time.Time, cents int64, free string) string {
	const head, freeLength = "999" + "9", 25
	free = strings.Repeat("0", freeLength) + spec.OnlyDigits(free)
	tail := fmt.Sprintf("%04d%010d", DueFactor(due), cents%1e10) + free[len(free)-freeLength:]
	return head + string(mod11(head+tail)) + tail
}

// Line returns the digitable line, the 47 digits that a payer types: the digits of the
// barcode in another order, with a check digit for each of the first three fields.
func Line(barcode string) string {
	one, two, three := barcode[0:4]+barcode[19:24], barcode[24:34], barcode[34:44]
	return one + string(mod10(one)) + two + string(mod10(two)) + three + string(mod10(three)) +
		barcode[4:19]
}

// The due factor is the number of days since 7 October 1997, in four digits.
// After 9999, on 22 February 2025, it started again at 1000, as it does every
// 9000 days.
const (
	maxFactor   = 9999
	firstFactor = 1000
	factorCycle = maxFactor - firstFactor + 1
)

// DueFactor returns the due factor of t's day in Brasília. For a day before
// 7 October 1997 it is 0, which means "no due date".
func DueFactor(t time.Time) int {
	// Brazil has had no daylight saving time since 2019. A fixed zone works
	// even if no time zone database is installed.
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

// mod10 returns the check digit of a field of the digitable line: the weights are
// 2, 1, 2, 1 from the right, and the digits of each product are added up.
func mod10(s string) byte {
	sum := 0
	for i := range len(s) {
		p := int(s[len(s)-1-i]-'0') * (2 - i%2)
		sum += p/10 + p%10
	}
	return byte('0' + (10-sum%10)%10)
}

// mod11 returns the check digit of the barcode: the weights are 2 to 9 from the
// right, repeated. A result of 10 or 11 becomes 1.
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
