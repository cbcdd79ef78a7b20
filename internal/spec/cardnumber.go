package spec

import (
	"strings"
	"time"
)

// minDigits is the length of the shortest card number.
const minDigits = 13

// ContainsCardNumber reports whether s contains a card number: 13 to 19 digits,
// in one run or grouped as on a card, with an issuer's prefix, a length that
// the issuer uses, and a valid Luhn check digit. The check digit alone is not
// enough: one number in ten passes by chance.
func ContainsCardNumber(s string) bool {
	_, end := findCard(s, 0)
	return end > 0
}

// MaskCardNumbers replaces every card number in s with ***.
func MaskCardNumbers(s string) string {
	var b strings.Builder
	at := 0
	for start, end := findCard(s, 0); end > 0; start, end = findCard(s, at) {
		b.WriteString(s[at:start] + "***")
		at = end
	}
	return b.String() + s[at:]
}

// findCard returns the position of the first card number at or after from; end
// is 0 if there is none.
func findCard(s string, from int) (start, end int) {
	for i := from; i+minDigits <= len(s); i++ {
		if !isDigit(s[i+3]) { // the first group has at least four digits
			i += 3
			continue
		}
		if !isDigit(s[i]) {
			continue
		}
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		switch n := j - i; {
		case n >= minDigits:
			if mayStart(s, i, n) && mayEnd(s, j) && isCardNumber(s[i:j]) && !isReference(s, i) && (n != 14 || !endsBoleto(s, i)) {
				return i, j
			}
		case n == 4 || n == 8:
			if end := findGroups(s, i, j); end > 0 && (s[j] != '-' || !isReference(s, i)) {
				return i, end
			}
		}
		i = j
	}
	return 0, 0
}

// findGroups looks for a card number in groups, such as 4-4-4-4 and 4-6-5. The
// first group is s[i:j].
func findGroups(s string, i, j int) (end int) {
	if !mayStart(s, i, 16) {
		return 0
	}
	var buf [19]byte
	digits := append(buf[:0], s[i:j]...)
	for j < len(s) && (s[j] == ' ' || s[j] == '-') {
		first := j + 1
		for j = first; j < len(s) && isDigit(s[j]); j++ {
			if len(digits) == cap(digits) {
				return 0
			}
			digits = append(digits, s[j])
		}
		if j == first || j-first > 8 {
			return 0
		}
		if len(digits) >= minDigits && mayEnd(s, j) && !continues(s, j) && isCardNumber(string(digits)) {
			return j
		}
	}
	return 0
}

// continues reports whether the group that ends at i is followed by a hyphen
// and a word character: the first groups of a UUID may be all digits.
func continues(s string, i int) bool {
	return i+1 < len(s) && s[i] == '-' && isWord(s[i+1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// mayStart reports whether a card number of n digits may start at i: not inside
// a word, not after a decimal point, and not after the + of a phone number.
func mayStart(s string, i, n int) bool {
	if i == 0 {
		return true
	}
	switch c := s[i-1]; {
	case c == '+':
		return n > 15
	case c == '.':
		return i == 1 || !isDigit(s[i-2])
	case c == 'B' && i > 1 && s[i-2] == '%': // track 1 of a magnetic stripe
		return true
	default:
		return !isWord(c)
	}
}

// mayEnd reports whether a card number may end at i.
func mayEnd(s string, i int) bool {
	if i == len(s) {
		return true
	}
	return !isWord(s[i]) && (s[i] != '.' || i+1 == len(s) || !isDigit(s[i+1]))
}

// isCardNumber reports whether 13 to 19 digits are a card number.
func isCardNumber(digits string) bool {
	n := len(digits)
	if cardLengths(digits)&(1<<n) == 0 || !luhn(digits) {
		return false
	}
	switch n {
	case 13: // an old Visa card or an EAN-13
		return !isGTIN(digits)
	case 14: // a Diners card, a CNPJ or ddmmyyyyhhmmss
		_, err := time.Parse("02012006150405", digits)
		return err != nil && !isCNPJ(digits)
	case 18: // a UnionPay or Maestro card, or a CLABE
		return !isCLABE(digits)
	default:
		return true
	}
}

func luhn(digits string) bool { return sumsToMultipleOfTen(digits, "0246813579") } // for each digit, the digit sum of its double

// isGTIN reports whether the check digit of an EAN-13 is valid.
func isGTIN(digits string) bool { return sumsToMultipleOfTen(digits, "0369258147") } // for each digit, the last digit of its triple

// sumsToMultipleOfTen reports whether the digits sum to a multiple of ten, with every
// second digit from the right replaced by its entry in weighted.
func sumsToMultipleOfTen(digits, weighted string) bool {
	sum := 0
	for i := range len(digits) {
		c := digits[i]
		if (len(digits)-i)%2 == 0 {
			c = weighted[c-'0']
		}
		sum += int(c - '0')
	}
	return sum%10 == 0
}

// Card number lengths as bits.
const (
	len13   = 1 << 13
	len14   = 1 << 14
	len15   = 1 << 15
	len16   = 1 << 16
	len18   = 1 << 18
	len19   = 1 << 19
	to19    = 1<<20 - len16 // 16 to 19
	maestro = 1<<20 - len13 // 13 to 19; shorter ones would match too many other numbers
	diners  = len14 | len16 | len19
)

// cardLengths returns the lengths that a number's issuer uses, or 0 if no
// issuer has the prefix.
func cardLengths(digits string) int {
	p := 0 // the first six digits
	for i := range 6 {
		p = p*10 + int(digits[i]-'0')
	}
	switch p2, p3, p4 := p/10000, p/1000, p/100; {
	case p2 >= 40 && p2 <= 49: // Visa, many of Elo
		return len13 | len16 | len19
	case p2 >= 51 && p2 <= 55, p4 >= 2221 && p4 <= 2720: // Mastercard
		return len16
	case p2 == 34, p2 == 37: // American Express
		return len15
	case p3 >= 300 && p3 <= 305, p3 == 309, p2 == 36, p2 == 38, p2 == 39: // Diners Club, Hipercard
		return diners
	case p4 >= 3528 && p4 <= 3589: // JCB
		return to19
	case p4 == 5018, p4 == 5020, p4 == 5038, p4 == 5893, p4 == 6304, p4 == 6759, p4 >= 6761 && p4 <= 6763: // Maestro
		return maestro
	case p2 == 50, p2 >= 56 && p2 <= 58, p2 == 67: // Elo, Aura, Maestro
		return len16 | len18 | len19
	case p4 == 6011, p3 >= 644 && p3 <= 649, p2 == 65, p2 == 62, p2 == 81: // Discover, Elo, UnionPay
		return to19
	case p == 606282, p3 == 636, p3 == 637: // Hipercard, Elo, Hiper
		return len16 | len19
	default:
		return 0
	}
}
