package operations

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Workers take the newest operation and one of those that have waited longest in turn, each
// operation once.
func TestTheNewestAndTheOldestComeInTurn(t *testing.T) {
	t.Parallel()
	list := func(from, to int64) (list []dueOperation) {
		for id := from; id <= to; id++ {
			list = append(list, dueOperation{id: id})
		}
		return list
	}
	for name, tc := range map[string]struct{ due, newest []dueOperation }{
		"all of them":           {list(1, 9), nil},
		"a part of a backlog":   {list(1, 20), list(90, 99)},
		"parts with an overlap": {list(1, 20), list(15, 24)},
		"one":                   {list(1, 1), nil},
		"none":                  {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := make(map[int64]bool)
			last := int64(0)
			for _, d := range append(tc.due[:len(tc.due):len(tc.due)], tc.newest...) {
				all[d.id] = true
				last = max(last, d.id)
			}
			got := inTurn(tc.due, tc.newest)
			assert.Len(t, got, len(all))
			for i, d := range got {
				assert.True(t, all[d.id], "%d is there twice, or was not due", d.id)
				delete(all, d.id)
				if i%2 == 0 && i < 2*min(len(tc.newest), 4) {
					assert.Equal(t, last-int64(i/2), d.id)
				}
			}
			if len(got) > 0 {
				assert.Equal(t, last, got[0].id)
			}
		})
	}
}
