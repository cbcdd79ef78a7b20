package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The patterns match mistakes and do not match correct text.
func TestStandardTermsHaveNoFalsePositives(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"after a lost answer the client stops":               1,
		"HEAD is answered with 405":                          1,
		"`client-answer-size` is an id, p.Answered a field":  0,
		"an account that nobody else uses":                   1,
		"NoBody, http.NoBody":                                0,
		"the error was mended":                               1,
		"recommended, amendment":                             0,
		"the gateway refuses the request":                    1,
		"a create is refused with 409":                       1,
		"the issuer refuses the card; the charge is refused": 0,
		"| none: internal/spec |":                            1,
		"none: the client sends nothing":                     0,
		"the rest works as ever":                             1,
		"was everything, as every test does":                 0,
		"Nullable texts are empty":                           1,
		"20 where it is not sent":                            1,
		"the transaction is found again":                     1,
		"errors that pass are waited out":                    1,
		"the webhook tells of the payment":                   1,
		"the status tells whether it is paid":                0,
	} {
		got := 0
		for _, word := range words {
			got += len(word.pattern.FindAllString(text, -1))
		}
		assert.Equal(t, want, got, text)
	}
}

func TestOnlyProseIsChecked(t *testing.T) {
	t.Parallel()
	const source = "package p\n\n// Nobody answers.\nvar s = \"for want of x\" // nobody\n\ntype t struct {\n\tA int `json:\"nobody else\"`\n}\n"
	assert.Equal(t, []string{
		`p.go:3: " answers.": write response, returns`, `p.go:3: "Nobody": write no one, someone, anyone; or who it is`,
		`p.go:4: "for want of": write for lack of`, `p.go:4: "nobody": write no one, someone, anyone; or who it is`,
	}, check("p.go", []byte(source)))
	assert.Equal(t, []string{`g.md:2: "as ever": write unaffected`}, check("g.md", []byte("# A guide\nas ever\n")))
	assert.Empty(t, check("p_test.go", []byte("package p\n\nvar id = \"nobody\"\n")), "a fixture")
}
