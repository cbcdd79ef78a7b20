package engine_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the comparison with the real zone must run on a machine without zoneinfo

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// starts returns the local times at which the first periods of a subscription
// start.
func starts(t *testing.T, at string, periods int, edit ...func(*engine.NewSubscription)) []string {
	t.Helper()
	w := newWorld(t)
	created, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	w.env.Now = created.UTC()
	id := w.subscribe("pgct_ok", edit...)
	days := make([]string, periods)
	for i := range days {
		s := w.sub(id)
		require.Equal(t, i+1, s.Cycle)
		require.Equal(t, w.env.Now, s.CurrentPeriodStart, "a period starts when the previous one ends")
		days[i] = s.CurrentPeriodStart.In(created.Location()).Format("2006-01-02 15:04")
		w.advance(s.CurrentPeriodEnd.Sub(w.env.Now))
	}
	return days
}

func every(interval string, count int) func(*engine.NewSubscription) {
	return func(in *engine.NewSubscription) { in.Interval, in.IntervalCount = interval, count }
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		at   string
		edit func(*engine.NewSubscription)
		want []string
	}{
		{
			"31 January", "2027-01-31T10:00:00-03:00", every("month", 1),
			inOrder("2027-01-31 10:00", "2027-02-28 10:00", "2027-03-31 10:00", "2027-04-30 10:00", "2027-05-31 10:00"),
		},
		{
			"31 January of a leap year", "2028-01-31T10:00:00-03:00", every("month", 1),
			inOrder("2028-01-31 10:00", "2028-02-29 10:00", "2028-03-31 10:00"),
		},
		{
			"29 February, yearly", "2028-02-29T10:00:00-03:00", every("month", 12),
			inOrder("2028-02-29 10:00", "2029-02-28 10:00", "2030-02-28 10:00", "2031-02-28 10:00", "2032-02-29 10:00"),
		},
		{
			"every five months across the end of a year", "2027-10-31T10:00:00-03:00", every("month", 5),
			inOrder("2027-10-31 10:00", "2028-03-31 10:00", "2028-08-31 10:00", "2029-01-31 10:00"),
		},
		{
			"late evening belongs to the payer's local day", "2027-01-31T23:30:00-03:00", every("month", 1),
			inOrder("2027-01-31 23:30", "2027-02-28 23:30", "2027-03-31 23:30"),
		},
		{
			"an evening whose day is already the next one in UTC", "2027-01-30T23:30:00-03:00", every("month", 1),
			inOrder("2027-01-30 23:30", "2027-02-28 23:30", "2027-03-30 23:30"),
		},
		{
			"an explicit billing day", "2027-01-04T10:00:00-03:00",
			func(in *engine.NewSubscription) { in.Interval, in.BillingDay = "month", 31 },
			inOrder("2027-01-04 10:00", "2027-02-28 10:00", "2027-03-31 10:00", "2027-04-30 10:00"),
		},
		{
			"the first as the billing day", "2027-01-04T10:00:00-03:00",
			func(in *engine.NewSubscription) { in.Interval, in.BillingDay = "month", 1 },
			inOrder("2027-01-04 10:00", "2027-02-01 10:00", "2027-03-01 10:00"),
		},
		{
			"weeks", "2027-02-22T10:00:00-03:00", every("week", 2),
			inOrder("2027-02-22 10:00", "2027-03-08 10:00", "2027-03-22 10:00"),
		},
		{
			"days", "2027-02-27T10:00:00-03:00", every("day", 1),
			inOrder("2027-02-27 10:00", "2027-02-28 10:00", "2027-03-01 10:00"),
		},
		{
			"365 days", "2027-06-01T10:00:00-03:00", every("day", 365),
			inOrder("2027-06-01 10:00", "2028-05-31 10:00", "2029-05-31 10:00"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, starts(t, test.at, len(test.want), test.edit))
		})
	}
}

// The periods of a Pix Automatico start on the day of its first debit, not on
// that of the request.
func TestPeriodsOfALateAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.subscribe("", byPix)
	w.advance(20 * time.Hour)
	require.Nil(t, w.take(id, does(subAuthorize)))
	assert.Equal(t, 5, w.sub(id).BillingDayOfMonth())
	assert.Equal(t, w.env.Now.AddDate(0, 1, 0), w.sub(id).CurrentPeriodEnd)
}

// The engine's fixed zone equals the real one as long as Brazil has no daylight
// saving time.
func TestBillingZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Sao_Paulo")
	require.NoError(t, err)
	for day := time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2038; day = day.AddDate(0, 0, 1) {
		_, offset := day.In(zone).Zone()
		require.Equal(t, -3*60*60, offset, "on %s", day)
	}
}
