package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/internal/spec"
)

// A name without a dot is that of a machine of the network, such as a container's.
func TestAHostIsLocalByItsNameOrAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"a", "a1", "db", "shop-2", "LOCALHOST", "localhost.", "127.0.0.1", "10.0.0.7", "::1", "::ffff:192.168.0.1"} {
		assert.True(t, spec.IsLocal(host), host)
	}
	for _, host := range []string{"", "1", "1a", "a:b", "a%eth0", "shop.example", "8.8.8.8", "2001:db8::1", "0x7f000001"} {
		assert.False(t, spec.IsLocal(host), host)
	}
}
