package ids_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
)

var _ engine.IDs = (*ids.Source)(nil)

var start = time.Date(2027, time.January, 4, 12, 0, 0, 123_000_000, time.UTC)

func TestUUIDIsVersion7WithTheGivenTime(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]*ids.Source{"seeded": ids.Seeded(42), "random": ids.New()} {
		id, err := uuid.Parse(source.UUID(start))
		require.NoError(t, err, name)
		assert.Equal(t, uuid.Version(7), id.Version(), name)
		assert.Equal(t, uuid.RFC4122, id.Variant(), name)
		seconds, nanoseconds := id.Time().UnixTime()
		assert.True(t, start.Equal(time.Unix(seconds, nanoseconds)), name)

		later := source.UUID(start.Add(time.Millisecond))
		assert.Less(t, id.String(), later, "%s: a UUID of a later millisecond sorts later", name)
	}
	assert.Regexp(t, "^00000000-0000-7", ids.New().UUID(time.Unix(-1, 0)), "before 1970")
}

func TestTheSameSeedGivesTheSameIDs(t *testing.T) {
	t.Parallel()
	one, other := ids.Seeded(42), ids.Seeded(42)
	assert.Equal(t, draw(one), draw(other))
	assert.NotEqual(t, draw(ids.Seeded(42)), draw(ids.Seeded(43)))

	one, other = ids.New(), ids.New()
	assert.NotEqual(t, draw(one), draw(other))
}

func TestARestoredSourceContinuesItsSequence(t *testing.T) {
	t.Parallel()
	source := ids.Seeded(7)
	draw(source)
	state, err := source.MarshalBinary()
	require.NoError(t, err)
	want := draw(source)

	again := ids.New()
	require.NoError(t, again.UnmarshalBinary(state))
	assert.Equal(t, want, draw(again))

	require.NoError(t, source.UnmarshalBinary(state))
	assert.Equal(t, want, draw(source), "the original source, restored")

	require.ErrorContains(t, source.UnmarshalBinary([]byte("damaged")), "damaged state")
	assert.Len(t, draw(source), len(want))
}

func TestRandomSourceHasNoState(t *testing.T) {
	t.Parallel()
	source := ids.New()
	state, err := source.MarshalBinary()
	require.NoError(t, err)
	assert.Empty(t, state)

	seeded := ids.Seeded(1)
	require.NoError(t, seeded.UnmarshalBinary(state))
	assert.NotEqual(t, draw(ids.Seeded(1)), draw(seeded))
}

func draw(source *ids.Source) []string {
	return []string{
		source.UUID(start), source.Alphanumeric(11), source.UUID(start), source.EndToEndID(start), source.Alphanumeric(100),
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	source := ids.Seeded(1)

	assert.Empty(t, source.Alphanumeric(0))
	assert.Regexp(t, `^[A-Z0-9]{40}$`, source.Alphanumeric(40))
	brasilia := start.In(time.FixedZone("BRT", -3*60*60))
	assert.Regexp(t, `^E99999999202701041200[A-Z0-9]{11}$`, source.EndToEndID(brasilia))

	long := source.Alphanumeric(36_000)
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" {
		assert.InDelta(t, 1000, strings.Count(long, string(c)), 200, "%c is as likely as the others", c)
	}
}

func TestIDsOfManyGoroutinesDiffer(t *testing.T) {
	t.Parallel()
	for _, source := range []*ids.Source{ids.Seeded(1), ids.New()} {
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			seen = make(map[string]bool)
		)
		for range 8 {
			wg.Go(func() {
				for range 500 {
					id := source.UUID(start)
					mu.Lock()
					seen[id] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		assert.Len(t, seen, 8*500)
	}
}
