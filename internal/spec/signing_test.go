package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"":            "is empty",
		" ":           "white space",
		"12345678\n":  "white space",
		`"12345678"`:  "in quotes",
		"'12345678'":  "in quotes",
		"`12345678`":  "in quotes",
		"“12345678”":  "in quotes",
		"‘12345678’":  "in quotes",
		`"`:           "has 1 characters",
		"1234567":     "has 7 characters; a signing key has at least 8",
		"12345678":    "",
		`"12345678`:   "",
		`12345678"`:   "",
		"whsec_12'34": "",
	} {
		problem := spec.SigningKeyProblem(key)
		assert.Contains(t, problem, want, key)
		assert.Equal(t, want == "", problem == "", "%s: %s", key, problem)
	}
}
