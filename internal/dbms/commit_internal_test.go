package dbms

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coded is an error of PostgreSQL.
type coded string

func (c coded) Error() string    { return "the server says " + string(c) }
func (c coded) SQLState() string { return string(c) }

func TestACommitIsInDoubtUnlessTheDatabaseSaysThatItRolledBack(t *testing.T) {
	t.Parallel()
	require.NoError(t, Committed(nil))
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, context.Canceled, context.DeadlineExceeded,
		errors.New("write tcp 10.0.0.1:5432: broken pipe"), errors.New("conn closed"),
		coded("08006"), coded("08007"), coded("08P01"), coded("57014"), coded("57P01"), coded("57P02"), coded("57P03"), coded("57P05"),
		coded("53100"), coded("58030"), coded("XX000"), coded("40003"),
		errors.New("disk I/O error (5386)"), errors.New("database or disk is full (13)"), errors.New("interrupted (9)"),
	} {
		marked := Committed(fmt.Errorf("commit: %w", err))
		require.ErrorIs(t, marked, ErrUnknownCommit)
		require.ErrorIs(t, marked, err)
		assert.False(t, IsConflict(marked), "%v is not repeated blindly", err)
	}
	for _, err := range []error{
		coded("40001"), coded("40P01"), coded("40002"), coded("23503"), coded("23505"), coded("23514"), coded("P0001"), coded("25P02"),
		sql.ErrTxDone, errors.New("commit unexpectedly resulted in rollback"), errors.New("pq: Could not complete operation in a failed transaction"),
		errors.New("database is locked (5) (SQLITE_BUSY)"), errors.New("constraint failed: FOREIGN KEY constraint failed (787)"),
		errors.New("cannot commit - no transaction is active"),
	} {
		require.NotErrorIs(t, Committed(err), ErrUnknownCommit, err.Error())
		require.ErrorIs(t, Committed(err), err)
	}
}

func TestWorkThatMayBeCommittedIsNotRepeated(t *testing.T) {
	t.Parallel()
	runs := 0
	err := Repeat(t.Context(), func() error {
		runs++
		return fmt.Errorf("%w: the log says that the database is locked", ErrUnknownCommit)
	})
	require.ErrorIs(t, err, ErrUnknownCommit)
	assert.Equal(t, 1, runs)
}
