package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

const visa = "4111111111111111"

func TestCharactersAroundACardNumber(t *testing.T) {
	t.Parallel()
	for _, written := range []string{visa, "4111 1111 1111 1111"} {
		for n := range 20 {
			assert.True(t, spec.ContainsCardNumber(strings.Repeat("x", n)+" "+written), "after %d letters", n)
		}
		for _, beside := range []string{
			"* paid", "1 *", "12 *", "123 *", "1234 5678 and *", "1234 5678 90 *", "41111 *", "*-", "*- ", "*- x", "*.", "*.x", "*,00", "*:00",
			"/*/", ":*:", "`*`", "{*}", "@*@", "[*]", ".*", "x.*", "..*", "x+*", "%B*", "x%B*", "*=",
		} {
			text := strings.Replace(beside, "*", written, 1)
			assert.True(t, spec.ContainsCardNumber(text), text)
		}
		for _, c := range "azAZ_" {
			assert.False(t, spec.ContainsCardNumber(string(c)+written), "%c before %s", c, written)
			assert.False(t, spec.ContainsCardNumber(written+string(c)), "%c after %s", c, written)
		}
		for _, beside := range []string{"1." + written, "x1." + written, written + ".5", "B" + written, "xB" + written} {
			assert.False(t, spec.ContainsCardNumber(beside), beside)
		}
	}
	for _, digit := range []string{"0", "9"} {
		assert.False(t, spec.ContainsCardNumber(digit+visa), digit+visa)
		assert.False(t, spec.ContainsCardNumber(visa+digit), visa+digit)
	}
}

func TestAPhoneNumberHasNoMoreThanFifteenDigits(t *testing.T) {
	t.Parallel()
	assert.False(t, spec.ContainsCardNumber("+378282246310005"), "an American Express number has 15 digits")
	assert.True(t, spec.ContainsCardNumber("+"+visa))
	assert.True(t, spec.ContainsCardNumber("+4111 1111 1111 1111"))
}

func TestCardNumbersInGroups(t *testing.T) {
	t.Parallel()
	for groups, card := range map[string]bool{
		"4111 1111 1111 1111": true, "41111111 11111111": true, "4111 1111 11111111": true, "4111-11111111-1111": true,
		"4111 1 1111 1111111": true, "41111 1111 1111 111": false, "411 1111 1111 11111": false, "4111 111 111111111": false, "411111 1111111111": false,
		"4111  1111 1111 1111": false, "4111 1111 1111 1111 ": true, "4111 1111 1111 1111-2": false, "4111-1111-1111-1111-a": false,
		"4111-1111-1111-1111-ab": false, "4111 1111 1111 1111 1111": true, "4111 1111 1111 1112 1111": false, "4111.1111.1111.1111": false,
	} {
		assert.Equal(t, card, spec.ContainsCardNumber(groups), groups)
	}
}

func TestEveryCardNumberInAStringIsMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		visa: "***", visa + " " + visa: "*** ***", "a " + visa: "a ***", visa + " b": "*** b", "no number": "no number", "": "",
		"1 4111 1111 1111 1111, 2 " + visa + ".": "1 ***, 2 ***.",
	} {
		assert.Equal(t, want, spec.MaskCardNumbers(text))
	}
}

// TestALongStringIsSearchedInLinearTime searches a million digits.
func TestALongStringIsSearchedInLinearTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1", "1111 ", "4111-", "4111 1", "+41"} {
		assert.False(t, spec.ContainsCardNumber(strings.Repeat(text, 1<<20/len(text))), text)
	}
}

// TestIssuerPrefixesAndLengths lists the first four digits and the lengths of
// everything that is treated as a card number.
func TestIssuerPrefixesAndLengths(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	last, from := "", 0
	for p := range 10_001 {
		lengths := lengthsOf(p)
		if lengths == last {
			continue
		}
		if last != "" {
			fmt.Fprintf(&got, "%04d-%04d%s\n", from, p-1, last)
		}
		last, from = lengths, p
	}
	assert.Equal(t, `2221-2720 16
3000-3059 14 16 19
3090-3099 14 16 19
3400-3499 15
3528-3589 16 17 18 19
3600-3699 14 16 19
3700-3799 15
3800-3999 14 16 19
4000-4999 13 16 19
5000-5017 16 18 19
5018-5018 13 14 15 16 17 18 19
5019-5019 16 18 19
5020-5020 13 14 15 16 17 18 19
5021-5037 16 18 19
5038-5038 13 14 15 16 17 18 19
5039-5099 16 18 19
5100-5599 16
5600-5892 16 18 19
5893-5893 13 14 15 16 17 18 19
5894-5899 16 18 19
6011-6011 16 17 18 19
6200-6299 16 17 18 19
6304-6304 13 14 15 16 17 18 19
6360-6379 16 19
6440-6599 16 17 18 19
6700-6758 16 18 19
6759-6759 13 14 15 16 17 18 19
6760-6760 16 18 19
6761-6763 13 14 15 16 17 18 19
6764-6799 16 18 19
8100-8199 16 17 18 19
`, got.String())
	for prefix, matched := range map[string]bool{"606281": false, "606282": true, "606283": false} {
		for n := 13; n <= 20; n++ {
			assert.Equal(t, matched && (n == 16 || n == 19), isMatched(prefix, n), "%s of %d digits", prefix, n)
		}
	}
}

// lengthsOf returns the lengths of card numbers with a four-digit prefix.
func lengthsOf(prefix int) string {
	var lengths strings.Builder
	for n := 13; n <= 20 && prefix < 10_000; n++ {
		if isMatched(fmt.Sprintf("%04d", prefix), n) {
			fmt.Fprintf(&lengths, " %d", n)
		}
	}
	return lengths.String()
}

// isMatched reports whether a number of n digits with this prefix is treated as
// a card number. With 13 or 14 digits it may also be an EAN-13, a CNPJ or a
// timestamp.
func isMatched(prefix string, n int) bool {
	for fill := range 4 {
		number := fmt.Sprintf("%s%s%d0", prefix, strings.Repeat("9", n-len(prefix)-2), fill)
		if spec.ContainsCardNumber(withCheckDigit(number)) {
			return true
		}
	}
	return false
}
