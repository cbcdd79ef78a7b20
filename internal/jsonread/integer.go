package jsonread

import (
	"strconv"
	"strings"
)

// Integer parses a whole number, which may be written as 1200.00 or 1.2e3. Other
// numbers, such as 12.5, are rejected rather than rounded. A number with a
// fraction or an exponent must be below 2^53: a larger one was probably a float
// and may have lost its last digits.
func Integer(text string) (int64, bool) {
	if n, ok := PlainInteger(text); ok {
		return n, true
	}
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil {
			return 0, false
		}
		mantissa = text[:i]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, dotted := strings.Cut(mantissa, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	all := whole + fraction
	significant := strings.TrimRight(all, "0")
	exponent += len(all) - len(significant) - len(fraction)
	significant = strings.TrimLeft(significant, "0")
	const maxDigits = 16 // of 2^53
	switch {
	case significant == "":
		return 0, true
	case exponent < 0, exponent > maxDigits, len(significant) > maxDigits:
		return 0, false
	}
	significant += strings.Repeat("0", exponent)
	if negative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant, 10, 64)
	return n, err == nil && -1<<53 < n && n < 1<<53
}

// PlainInteger parses an integer without a fraction or an exponent. The loop
// takes a third of the time of strconv, which is used only for long and negative
// numbers.
func PlainInteger(text string) (int64, bool) {
	const maxDigits = 18 // that always fit in an int64
	var n int64
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' || i == maxDigits {
			n, err := strconv.ParseInt(text, 10, 64)
			return n, err == nil
		}
		n = n*10 + int64(c-'0')
	}
	return n, text != ""
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
