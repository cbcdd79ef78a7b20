package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
)

// An arrow that crosses a column passes between its states: behind one it would
// look like two arrows, from and to that state.
func TestNoStateHidesAnArrow(t *testing.T) {
	t.Parallel()
	crossing := 0
	for _, m := range docs.Machines() {
		d := newDiagram(m.Title, m.States()[0])
		for _, e := range d.Edges {
			var startX, startY, lane int
			_, err := fmt.Sscanf(e.Path, "M%d %d", &startX, &startY)
			require.NoError(t, err)
			before, level, straight := strings.Cut(e.Path, "H")
			if !straight {
				var x1, y1, x2, y2, endX, endY int
				_, err := fmt.Sscanf(e.Path, "M%d %dC%d %d %d %d %d %d", &startX, &startY, &x1, &y1, &x2, &y2, &endX, &endY)
				require.NoError(t, err)
				assert.LessOrEqual(t, endX-startX, columnGap, "%s: %s crosses a column", m.Title, e.Path)
				continue
			}
			crossing++
			fields := strings.Fields(before)
			_, err = fmt.Sscan(fields[len(fields)-1], &lane)
			require.NoError(t, err)
			for _, s := range d.States {
				assert.False(t, s.Y <= lane && lane <= s.Y+s.Height, "%s: %s is hidden by %s, to %s", m.Title, e.Path, s.Name, level)
			}
			assert.Less(t, lane, d.Height)
		}
	}
	assert.Positive(t, crossing)
}
