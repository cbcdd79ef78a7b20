package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

func TestPortsAreDecimal(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]bool{
		"1": true, "65535": true, "0": false, "65536": false, "": false, "-1": false, "5432a": false, "1a": false, "0x50": false,
	} {
		assert.Equal(t, want, spec.IsPort(port), port)
	}
}
