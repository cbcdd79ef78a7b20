package dbms

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownCommit reports that it is not known whether a transaction was committed: the
// response to COMMIT was lost, or does not tell. Its work may be repeated only if it finds
// what its first run may have stored.
var ErrUnknownCommit = errors.New("it is not known whether the transaction was committed")

// Committed returns the error of a COMMIT that was sent. It is an [ErrUnknownCommit] unless
// the database has said that it rolled back.
func Committed(err error) error {
	if err == nil || rolledBack(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknownCommit, err)
}

// doubtful are the classes of PostgreSQL's codes that may follow a commit, or come from a
// pooler instead of the server: a lost connection, a shutdown or an interruption, and
// failures of the machine or the server itself while it writes the commit. A wait for a
// synchronous standby that is canceled is a success with a warning; one whose session is
// terminated loses the connection after the commit.
var doubtful = []string{"08", "53", "57", "58", "F0", "XX", "40003"}

// SQLite and its drivers, and the drivers of PostgreSQL, say these without a code.
var endedTexts = []string{
	"transaction has already been committed or rolled back", // database/sql, before it sends anything
	"commit unexpectedly resulted in rollback",              // pgx: a statement of the transaction had failed
	"Could not complete operation in a failed transaction",  // lib/pq: the same
	"no transaction is active",                              // SQLite has rolled back, for example because the disk was full
	"constraint failed",                                     // SQLite: a deferred foreign key
}

// rolledBack reports whether the error of a COMMIT proves that nothing was committed.
func rolledBack(err error) bool {
	if state := State(err); state != "" {
		for _, class := range doubtful {
			if strings.HasPrefix(state, class) {
				return false
			}
		}
		return true
	}
	if IsConflict(err) {
		return true
	}
	for _, text := range endedTexts {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
