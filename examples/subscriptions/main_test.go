package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/examples/internal/demo"
)

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), demo.New(&out)), out.String())
	for _, want := range []string{
		"28 Jan 2027  Ana  subscription.trial_will_end  the trial ends on 31 January",
		"28 Feb 2027  Ana  subscription.renewed         paid BRL 49.90, until 31 March",
		" 3 Jun 2027  Ana  subscription.payment_failed  attempt 2: declined",
		" 5 Jun 2027  Ana  subscription.renewed         paid BRL 49.90, until 30 June",
		"10 Aug 2027  Bia  subscription.canceled        now canceled",
		"31 Dec 2027  Ana  subscription.canceled        now canceled",
		"Ana  11 months, BRL 548.90, 14 attempts",
	} {
		assert.Contains(t, out.String(), want)
	}
}
