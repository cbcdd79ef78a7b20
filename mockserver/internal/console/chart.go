package console

import (
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// chart shows incoming and outgoing money, a pair of bars for each day.
type chart struct {
	Width, Height, Middle int
	Bars                  []bar
	Days                  []store.Day // those with movements, the latest first
	From, To              time.Time
	Last                  time.Time // the latest day with movements, also before From; zero if there is none
}

type bar struct {
	X, Width   int
	InY, InH   int
	OutY, OutH int
	store.Day
}

const (
	barWidth  = 14
	barGap    = 6
	barHeight = 60
)

// newChart draws the days before now, the last of which is today.
func newChart(days []store.Day, now time.Time) chart {
	today := now.UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-shownDays)
	c := chart{
		Width: shownDays * (barWidth + barGap), Height: 2*barHeight + 2, Middle: barHeight + 1,
		From: first, To: today,
	}
	if len(days) > 0 {
		c.Last = days[len(days)-1].At
	}
	var most int64 = 1
	for _, d := range days {
		if !d.At.Before(first) && !d.At.After(today) {
			most = max(most, d.In, d.Out)
		}
	}
	for _, d := range days {
		if d.At.Before(first) || d.At.After(today) {
			continue
		}
		b := bar{X: int(d.At.Sub(first)/(24*time.Hour))*(barWidth+barGap) + barGap/2, Width: barWidth, Day: d}
		b.InH, b.OutH = scaled(d.In, most), scaled(d.Out, most)
		b.InY, b.OutY = c.Middle-b.InH, c.Middle+1
		c.Bars = append(c.Bars, b)
		c.Days = append([]store.Day{d}, c.Days...)
	}
	return c
}

// scaled returns the height of a bar: at least one pixel for a nonzero value.
func scaled(n, most int64) int {
	if n == 0 {
		return 0
	}
	return max(1, int(float64(n)/float64(most)*barHeight))
}
