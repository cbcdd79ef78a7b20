package operations

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

const (
	purgeRetain = 1000           // operations that it remembers because they stayed
	purgeStay   = 50             // of a batch: it is looked at again if more stayed, as of one that is half old
	purgeAll    = 24 * time.Hour // after which it looks at all operations again
)

// ended selects operations that may be purged.
const ended = ` AND account || '' = ? AND state || '' IN ('done', 'canceled') AND updated_at < ?`

// purging is where the last purge of this process ended, so that the next one does not look at
// the same operations again: those of other accounts, and those that had not ended.
type purging struct {
	mu     sync.Mutex
	began  time.Time // when a purge began with the first operation
	upTo   int64     // no operation of the account has an ID up to this one, apart from stayed
	stayed []int64
}

// Purge deletes the account's operations that were done or canceled before a time
// and returns how many. Their keys are forgotten: an operation inserted again with
// such a key is sent again. The gateway still applies a create only once per
// reference, but would apply a refund twice. Keep operations for as long as
// your code may insert them again. After an error, some or all may be deleted.
//
// It looks at some operations at a time, in the order of their IDs, until all of them were created
// after that time.
func (o *Outbox[TX]) Purge(ctx context.Context, before time.Time) (int64, error) {
	c, err := o.store.conn(ctx)
	if err == nil {
		err = o.store.own(ctx, c)
	}
	if err != nil {
		return 0, err
	}
	p := &o.purging
	p.mu.Lock()
	defer p.mu.Unlock()
	// A transaction that was open for long may have committed an operation with a lower ID.
	if time.Since(p.began) > purgeAll {
		p.began, p.upTo, p.stayed = time.Now(), 0, nil
	}
	n, err := p.again(ctx, c, o.store.account.Name, before.UnixMilli())
	if err == nil {
		var more int64
		more, err = p.forward(ctx, c, o.store.account.Name, before.UnixMilli(), o.store.db.PurgeAtOnce())
		n += more
	}
	return n, wrap(err)
}

// again purges those that stayed at an earlier purge.
func (p *purging) again(ctx context.Context, c sqldb.Session, account string, before int64) (int64, error) {
	if len(p.stayed) == 0 {
		return 0, nil
	}
	args := make([]any, len(p.stayed), len(p.stayed)+2)
	for i, id := range p.stayed {
		args[i] = id
	}
	in := `(?` + strings.Repeat(`, ?`, len(args)-1) + `)`
	gone, err := sqldb.All(ctx, c, `DELETE FROM `+table+` WHERE id IN `+in+ended+` RETURNING id`,
		append(args, account, before), scanID)
	p.stayed = slices.DeleteFunc(p.stayed, func(id int64) bool { return slices.Contains(gone, id) })
	return int64(len(gone)), err
}

// forward purges from where the last purge ended.
func (p *purging) forward(
	ctx context.Context, c sqldb.Session, account string, before int64, atOnce int,
) (n int64, err error) {
	advances := true
	for after := p.upTo; ; {
		var found, last, oldest int64
		if _, err := c.Row(ctx, `SELECT COUNT(*), COALESCE(MAX(id), 0), COALESCE(MIN(created_at), 0)
			FROM (SELECT id, created_at FROM `+table+` WHERE id > ? ORDER BY id LIMIT ?) AS batch`,
			[]any{after, atOnce}, &found, &last, &oldest); err != nil {
			return n, err
		}
		if found == 0 || oldest >= before {
			return n, nil
		}
		deleted, err := c.Exec(ctx, `DELETE FROM `+table+` WHERE id > ? AND id <= ?`+ended, after, last, account, before)
		n += deleted
		if err != nil {
			return n, err
		}
		if advances {
			advances, err = p.advance(ctx, c, account, after, last)
			if err != nil {
				return n, err
			}
		}
		after = last
	}
}

// advance notes that a batch was looked at, unless too many of its operations stayed.
func (p *purging) advance(ctx context.Context, c sqldb.Session, account string, after, last int64) (bool, error) {
	left := min(purgeRetain-len(p.stayed), purgeStay)
	stayed, err := sqldb.All(ctx, c, `SELECT id FROM `+table+`
		WHERE id > ? AND id <= ? AND account || '' = ? ORDER BY id LIMIT ?`, []any{after, last, account, left + 1}, scanID)
	if err != nil || len(stayed) > left {
		return false, err
	}
	p.upTo, p.stayed = last, append(p.stayed, stayed...)
	return true, nil
}

func scanID(row database.Scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}
