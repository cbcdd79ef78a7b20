package respond_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	saoPaulo := time.FixedZone("-03", -3*60*60)
	for want, moment := range map[string]time.Time{
		`null`:                       {},
		`"2027-01-04T12:00:00.000Z"`: time.Date(2027, time.January, 4, 9, 0, 0, 0, saoPaulo),
		`"2027-12-31T23:59:59.007Z"`: time.Date(2027, time.December, 31, 23, 59, 59, 7_999_999, time.UTC),
		`"2028-02-29T00:00:00.070Z"`: time.Date(2028, time.February, 29, 0, 0, 0, 70_000_000, time.UTC),
		`"0999-02-03T04:05:06.789Z"`: time.Date(999, time.February, 3, 4, 5, 6, 789_000_000, time.UTC),
	} {
		assert.Equal(t, want, string(respond.Stamp(moment).AppendJSON(nil)))
		var read respond.Stamp
		require.NoError(t, json.Unmarshal([]byte(want), &read))
		assert.Equal(t, want, string(read.AppendJSON(nil)))
		assert.Equal(t, "x"+want, string(respond.Stamp(moment).AppendJSON([]byte("x"))))
	}
}
