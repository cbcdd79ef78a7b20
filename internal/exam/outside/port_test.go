package outside_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/exam/outside"
)

// A program that is down for a moment must find its port free when it comes back.
func TestAReservedPortIsNotGivenToAnotherExam(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 300 { // of 10,000 ports: without a reservation, two would be the same
		port, release, err := outside.ReservePort(t.Context())
		require.NoError(t, err)
		t.Cleanup(release)
		assert.False(t, seen[port], "port %d", port)
		seen[port] = true
	}
	for port := range seen {
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if assert.NoError(t, err, "the program can listen") {
			assert.NoError(t, l.Close())
		}
	}
}
