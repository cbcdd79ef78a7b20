package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)
	stored := &engine.Response{Key: "k", Fingerprint: "one", At: at}
	for name, tc := range map[string]struct {
		stored      *engine.Response
		after       time.Duration
		fingerprint string
		replay      bool
		refused     bool
	}{
		"a new key":                        {nil, 0, "one", false, false},
		"the same request":                 {stored, 0, "one", true, false},
		"the same request, a day less 1ns": {stored, 24*time.Hour - 1, "one", true, false},
		"the same request, a day later":    {stored, 24 * time.Hour, "one", false, false},
		"another request":                  {stored, 0, "two", false, true},
		"another request, a day later":     {stored, 24 * time.Hour, "two", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, refusal := engine.Replay(engine.Env{Now: at.Add(tc.after)}, tc.stored, tc.fingerprint)
			assert.Equal(t, tc.replay, response != nil)
			require.Equal(t, tc.refused, refusal != nil)
			if tc.refused {
				assert.Equal(t, engine.CodeIdempotencyKeyReused, refusal.Code)
			}
		})
	}
}
