package gateway

import "strconv"

// minorDigits are the digits after the decimal point of the currencies that
// have not two (ISO 4217). The interface counts the smallest unit.
func minorDigits(c Currency) int {
	switch c {
	case "CLP", "PYG", "KRW", "JPY":
		return 0
	case "BHD", "KWD", "OMR":
		return 3
	default:
		return 2
	}
}

// FormatAmount writes an amount in the smallest unit for people, with the
// currency before it: FormatAmount(123450, BRL) is "BRL 1234.50" and
// FormatAmount(1990, CLP) is "CLP 1990". An empty currency is left out.
func FormatAmount(amount int64, currency Currency) string {
	sign, magnitude := "", uint64(amount) //nolint:gosec // the least number has no positive, but this is right for it too
	if amount < 0 {
		sign, magnitude = "-", -magnitude
	}
	digits := strconv.FormatUint(magnitude, 10)
	if minor := minorDigits(currency); minor > 0 {
		for len(digits) <= minor {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-minor] + "." + digits[len(digits)-minor:]
	}
	if currency == "" {
		return sign + digits
	}
	return string(currency) + " " + sign + digits
}
