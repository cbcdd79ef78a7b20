package shop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

func TestEventsOfAnUnpaidCharge(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	events := gw.Events(t.Context(), mockserver.EventTransition) // from here on; without types: everything
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(24*time.Hour))

	for e := range events {
		if e.Transition.ID == charge.ID && e.Transition.To == "expired" {
			assert.Equal(t, "timer transaction.expire", e.Transition.Cause)
			break
		}
	}
}
