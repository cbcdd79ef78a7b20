package artefact_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/artefact"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

var _ engine.IDs = (*artefact.IDs)(nil)

var start = time.Date(2027, time.January, 4, 12, 0, 0, 123_000_000, time.UTC)

func TestUUIDIsVersion7OnItsClock(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string]*artefact.IDs{"seeded": artefact.NewSeededIDs(42), "random": artefact.NewIDs()} {
		id, err := uuid.Parse(ids.UUID(start))
		require.NoError(t, err, name)
		assert.Equal(t, uuid.Version(7), id.Version(), name)
		assert.Equal(t, uuid.RFC4122, id.Variant(), name)
		seconds, nanoseconds := id.Time().UnixTime()
		assert.True(t, start.Equal(time.Unix(seconds, nanoseconds)), name)

		later := ids.UUID(start.Add(time.Millisecond))
		assert.Less(t, id.String(), later, "%s: a later millisecond sorts after", name)
	}
	assert.Regexp(t, "^00000000-0000-7", artefact.NewIDs().UUID(time.Unix(-1, 0)), "before 1970")
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	one, other := artefact.NewSeededIDs(42), artefact.NewSeededIDs(42)
	assert.Equal(t, draw(one), draw(other))
	assert.NotEqual(t, draw(artefact.NewSeededIDs(42)), draw(artefact.NewSeededIDs(43)))

	one, other = artefact.NewIDs(), artefact.NewIDs()
	assert.NotEqual(t, draw(one), draw(other))
}

func TestStateGoesOnWhereItStood(t *testing.T) {
	t.Parallel()
	ids := artefact.NewSeededIDs(7)
	draw(ids)
	state, err := ids.MarshalBinary()
	require.NoError(t, err)
	want := draw(ids)

	again := artefact.NewIDs()
	require.NoError(t, again.UnmarshalBinary(state))
	assert.Equal(t, want, draw(again))

	require.NoError(t, ids.UnmarshalBinary(state))
	assert.Equal(t, want, draw(ids), "back to where it stood")

	require.ErrorContains(t, ids.UnmarshalBinary([]byte("damaged")), "damaged state")
	assert.Len(t, draw(ids), len(want))
}

func TestRandomSourceHasNoState(t *testing.T) {
	t.Parallel()
	ids := artefact.NewIDs()
	state, err := ids.MarshalBinary()
	require.NoError(t, err)
	assert.Empty(t, state)

	seeded := artefact.NewSeededIDs(1)
	require.NoError(t, seeded.UnmarshalBinary(state))
	assert.NotEqual(t, draw(artefact.NewSeededIDs(1)), draw(seeded))
}

func draw(ids *artefact.IDs) []string {
	return []string{
		ids.UUID(start), ids.Alphanumeric(11), ids.UUID(start), ids.Digits(4), ids.EndToEndID(start), ids.Alphanumeric(100),
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	ids := artefact.NewSeededIDs(1)

	assert.Empty(t, ids.Alphanumeric(0))
	assert.Regexp(t, `^[A-Z0-9]{40}$`, ids.Alphanumeric(40))
	assert.Regexp(t, `^\d{25}$`, ids.Digits(25))
	brasilia := start.In(time.FixedZone("BRT", -3*60*60))
	assert.Regexp(t, `^E99999999202701041200[A-Z0-9]{11}$`, ids.EndToEndID(brasilia))

	long := ids.Alphanumeric(36_000)
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" {
		assert.InDelta(t, 1000, strings.Count(long, string(c)), 200, "%c is as likely as the others", c)
	}
}

func TestIDsOfManyGoroutinesDiffer(t *testing.T) {
	t.Parallel()
	for _, ids := range []*artefact.IDs{artefact.NewSeededIDs(1), artefact.NewIDs()} {
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			seen = make(map[string]bool)
		)
		for range 8 {
			wg.Go(func() {
				for range 500 {
					id := ids.UUID(start)
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
