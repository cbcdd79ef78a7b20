package hosted

import (
	"strings"

	"github.com/gateway-go/gateway"
)

// form is the format of amounts in a currency's own country.
type form struct {
	sign  string // before the number
	comma bool   // 1.234,56 and not 1,234.56
}

// forms has the currencies with their own symbol. The dollars of several
// countries have distinct symbols; the other currencies are shown with their
// code.
var forms = map[string]form{ //nolint:gochecknoglobals // never changes
	"BRL": {"R$", true}, "ARS": {"AR$", true}, "CLP": {"CLP$", true}, "COP": {"COL$", true}, "PYG": {"₲", true},
	"UYU": {"$U", true}, "BOB": {"Bs", true}, "CRC": {"₡", true}, "EUR": {"€", true}, "IDR": {"Rp", true},
	"MXN": {"MX$", false}, "PEN": {"S/", false}, "GTQ": {"Q", false}, "NIO": {"C$", false}, "USD": {"US$", false},
	"GBP": {"£", false}, "JPY": {"¥", false}, "CNY": {"CN¥", false}, "KRW": {"₩", false}, "INR": {"₹", false},
	"PHP": {"₱", false}, "AUD": {"A$", false}, "CAD": {"CA$", false}, "NZD": {"NZ$", false}, "HKD": {"HK$", false},
	"SGD": {"S$", false},
}

const noBreak = "\u00a0"

// money formats an amount in the smallest unit as in the currency's country:
// "R$ 1.234,56".
func money(amount int64, currency string) string {
	f, known := forms[currency]
	if !known {
		f.sign = currency
	}
	number := strings.TrimPrefix(gateway.FormatAmount(amount, gateway.Currency(currency)), currency+" ")
	whole, cents, split := strings.Cut(number, ".")
	thousands, point := ",", "."
	if f.comma {
		thousands, point = point, thousands
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + thousands + whole[i:]
	}
	if split {
		whole += point + cents
	}
	return f.sign + noBreak + whole
}
