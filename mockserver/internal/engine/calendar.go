package engine

import "time"

// billingZone is America/Sao_Paulo, which has had no daylight saving time since
// 2019. It is a fixed zone so that a period ends at the same time on every machine.
var billingZone = time.FixedZone("America/Sao_Paulo", -3*60*60)

// boundary returns the end of the n-th period since s.Anchor; 0 is the anchor
// itself. Every boundary counts from the anchor and not from the previous one,
// so that 31 January is followed by 28 February and then by 31 March.
func (s *Subscription) boundary(n int) time.Time {
	if n == 0 {
		return s.Anchor
	}
	at, steps := s.Anchor.In(billingZone), n*s.IntervalCount
	switch s.Interval {
	case "day":
		return at.AddDate(0, 0, steps).UTC()
	case "week":
		return at.AddDate(0, 0, 7*steps).UTC()
	default:
		return dayOfMonth(at, steps, s.BillingDayOfMonth()).UTC()
	}
}

// dayOfMonth returns at moved ahead by a number of months, to the given day of the
// month or to the last day of a shorter one. The time of day stays the same.
func dayOfMonth(at time.Time, months, day int) time.Time {
	first := time.Date(at.Year(), at.Month()+time.Month(months), 1,
		at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), at.Location())
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(day, last)-1)
}

// billingDay returns the day of the month of at in the billing zone.
func billingDay(at time.Time) int { return at.In(billingZone).Day() }
