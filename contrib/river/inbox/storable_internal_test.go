package inbox

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStorableErrorKeepsItsChain(t *testing.T) {
	t.Parallel()
	require.NoError(t, storable(nil))
	assert.Same(t, io.EOF, storable(io.EOF))
	err := storable(fmt.Errorf("a\x00b\xff: %w", io.EOF))
	assert.Equal(t, "a\uFFFDb\uFFFD: EOF", err.Error())
	require.ErrorIs(t, err, io.EOF)

	var snooze *rivertype.JobSnoozeError
	require.ErrorAs(t, storable(fmt.Errorf("\x00: %w", river.JobSnooze(time.Second))), &snooze)
	var cancel *rivertype.JobCancelError
	err = storable(river.JobCancel(errors.New("\x00")))
	require.ErrorAs(t, err, &cancel)
	assert.NotContains(t, err.Error(), "\x00")
}

func TestAJobWhoseEventCantBeClaimedHasAStorableError(t *testing.T) {
	t.Parallel()
	job := &river.Job[jobArgs]{JobRow: &rivertype.JobRow{}}
	err := storable(unworked(job, fmt.Errorf("the database said \x00: %w", io.ErrUnexpectedEOF)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "the database said \uFFFD: unexpected EOF", err.Error())
}
