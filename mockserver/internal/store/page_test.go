package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

type page = store.Page[engine.Transaction]

func pageOf(t *testing.T, a *store.Account, q store.Query[engine.Transaction]) (p page) {
	t.Helper()
	a.View(func(d *store.Data) {
		var err error
		p, err = d.Transactions.Page(q)
		require.NoError(t, err)
	})
	return p
}

func refs(p page) []string {
	list := make([]string, len(p.Rows))
	for i, r := range p.Rows {
		list[i] = r.ExternalRef
	}
	return list
}

func TestPages(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	assert.Equal(t, page{Rows: []*engine.Transaction{}}, pageOf(t, a, store.Query[engine.Transaction]{Limit: 2}))
	fill(t, a, 5)

	first := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2})
	assert.Equal(t, []string{"order-4", "order-3"}, refs(first))
	assert.Empty(t, first.Prev)
	second := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: first.Next})
	assert.Equal(t, []string{"order-2", "order-1"}, refs(second))
	last := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: second.Next})
	assert.Equal(t, []string{"order-0"}, refs(last))
	assert.Empty(t, last.Next)

	back := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: last.Prev, Prev: true})
	assert.Equal(t, second, back, "the previous page has the same order and cursors")
	back = pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: back.Prev, Prev: true})
	assert.Equal(t, first, back)
	for _, p := range []page{first, second, last} {
		assert.Equal(t, 5, p.Total)
	}
}

func TestPreviousPageEdgeCases(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	fill(t, a, 2)
	require.NoError(t, w.clock.Advance(t.Context(), time.Second))
	mustCreate(t, a, pixPayment("late"))
	first := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2})
	assert.Equal(t, first, pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Prev: true}), "without a cursor, it is the first page")
	old := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: first.Next}).Prev
	assert.Equal(t, []string{"late"}, refs(pageOf(t, a, store.Query[engine.Transaction]{
		Limit: 2, Cursor: old, Prev: true, Since: noon.Add(time.Second),
	})), "the cursor is older than the first selected row")
}

func TestFullLastPageHasNoNext(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	fill(t, a, 4)
	first := pageOf(t, a, store.Query[engine.Transaction]{Limit: 2})
	assert.NotEmpty(t, first.Next)
	assert.Empty(t, pageOf(t, a, store.Query[engine.Transaction]{Limit: 2, Cursor: first.Next}).Next)
	assert.Empty(t, pageOf(t, a, store.Query[engine.Transaction]{Limit: 4}).Next)
}

// A page whose resources no longer match the filter is empty, but it is not the first
// page.
func TestEmptyPageHasAPrevCursor(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	fill(t, a, 3)
	q := store.Query[engine.Transaction]{Limit: 2}
	q.In(store.TransactionStatus, "pending")
	first := pageOf(t, a, q)
	require.Equal(t, []string{"order-2", "order-1"}, refs(first))
	var last string
	a.View(func(d *store.Data) { last = d.Transactions.ByRef("order-0").ID })
	_, refusal := a.Transaction(last, engine.Pay)
	require.Nil(t, refusal)

	q.Cursor = first.Next
	empty := pageOf(t, a, q)
	assert.Empty(t, empty.Rows)
	assert.Empty(t, empty.Next)
	require.NotEmpty(t, empty.Prev)
	q.Cursor, q.Prev = empty.Prev, true
	assert.Equal(t, refs(first), refs(pageOf(t, a, q)))
}

// Resources that are created during pagination don't appear and don't shift the pages.
func TestPagesAreStable(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	fill(t, a, 10)
	var seen []string
	q := store.Query[engine.Transaction]{Limit: 3}
	for i := 0; ; i++ {
		p := pageOf(t, a, q)
		seen = append(seen, refs(p)...)
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
		mustCreate(t, a, pixPayment(fmt.Sprintf("late-%d", i)))
	}
	assert.Len(t, seen, 10)
	for i, ref := range seen {
		assert.Equal(t, fmt.Sprintf("order-%d", 9-i), ref)
	}
}

func TestBadCursor(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	fill(t, a, 3)
	good := pageOf(t, a, store.Query[engine.Transaction]{Limit: 1}).Next
	other := newWorld(nil).Account("sk_test_1")
	fill(t, other, 9)
	ahead := pageOf(t, other, store.Query[engine.Transaction]{Limit: 1}).Next
	for _, cursor := range []string{"x", "AAAAAAAAAAA", good[:len(good)-1], good + "A", "0" + good[1:], ahead, "\x00"} {
		a.View(func(d *store.Data) {
			_, err := d.Transactions.Page(store.Query[engine.Transaction]{Limit: 1, Cursor: cursor})
			require.ErrorIs(t, err, store.ErrCursor, "%q", cursor)
			_, err = d.Transfers.Page(store.Query[engine.Transfer]{Limit: 1, Cursor: good})
			require.ErrorIs(t, err, store.ErrCursor, "a cursor of another list")
		})
	}
}

// Every combination of filters returns the same as a linear search, forwards and
// backwards.
func TestPagesMatchALinearSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	all := population(t, w, a, r)
	for range 400 {
		q, matches := randomQuery(r, all)
		want := []string{}
		for _, tx := range slices.Backward(all) {
			if matches(tx) {
				want = append(want, tx.ExternalRef)
			}
		}
		q.Limit = 1 + r.IntN(40)
		checkWalk(t, a, q, want)
	}
}

// Totals by several facets are counted in words of 64 rows, the first and last of
// which may be partly out of range.
func TestTotalsByFacetsAndDates(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	a := w.Account("sk_test_1")
	var all []*engine.Transaction
	for i := range 17_000 {
		in := pixPayment(fmt.Sprintf("order-%d", i))
		in.Method, in.Token = []string{"pix", "voucher", "credit_card"}[i%3], "pgpm_ok"
		all = append(all, mustCreate(t, a, in))
		if i%777 == 0 {
			require.NoError(t, w.clock.Advance(t.Context(), time.Second))
		}
	}
	for _, part := range [][2]int{{0, 16_999}, {1000, 16_000}, {0, 10}, {16_400, 16_999}, {5000, 16_390}} {
		q := store.Query[engine.Transaction]{Limit: 1, Since: all[part[0]].CreatedAt, Until: all[part[1]].CreatedAt}
		q.In(store.TransactionStatus, "pending", "paid")
		q.In(store.TransactionMethod, "pix", "voucher")
		want := 0
		for _, tx := range all {
			if tx.Method != "credit_card" && !tx.CreatedAt.Before(q.Since) && !tx.CreatedAt.After(q.Until) {
				want++
			}
		}
		assert.Equal(t, want, pageOf(t, a, q).Total, part)
	}
}

// population creates transactions and moves them between all states.
func population(t *testing.T, w *world, a *store.Account, r *rand.Rand) []*engine.Transaction {
	t.Helper()
	states := []string{"pending", "paid", "canceled", "refunded", "expired"}
	var all []*engine.Transaction
	for i := range 500 {
		in := pixPayment(fmt.Sprintf("order-%d", i))
		in.Method = []string{"pix", "voucher", "credit_card"}[r.IntN(3)]
		in.Token = "pgpm_ok"
		in.Buyer = &engine.Buyer{Email: fmt.Sprintf("buyer-%d@example.com", r.IntN(30))}
		in.Installments = 1 + r.IntN(3)
		created := mustCreate(t, a, in)
		all = append(all, created)
		if r.IntN(4) == 0 {
			require.NoError(t, w.clock.Advance(t.Context(), time.Second))
		}
	}
	for range 800 {
		i := r.IntN(len(all))
		after, refusal := a.Transaction(all[i].ID, func(env engine.Env, tx *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.SetStatus(env, tx, states[r.IntN(len(states))])
		})
		require.Nil(t, refusal)
		all[i] = after
	}
	return all
}

func randomQuery(r *rand.Rand, all []*engine.Transaction) (q store.Query[engine.Transaction], matches func(*engine.Transaction) bool) {
	var tests []func(*engine.Transaction) bool
	if r.IntN(2) == 0 {
		values := []string{"paid", "pending", "expired", "never"}[:1+r.IntN(4)]
		q.In(store.TransactionStatus, values...)
		tests = append(tests, func(tx *engine.Transaction) bool { return slices.Contains(values, tx.Status) })
	}
	if r.IntN(3) == 0 {
		q.In(store.TransactionMethod, "pix", "voucher", "pix")
		tests = append(tests, func(tx *engine.Transaction) bool { return tx.Method != "credit_card" })
	}
	if r.IntN(3) == 0 {
		email := fmt.Sprintf("buyer-%d@example.com", r.IntN(32))
		q.Is(store.TransactionEmail, email)
		tests = append(tests, func(tx *engine.Transaction) bool { return tx.Buyer.Email == email })
	}
	if r.IntN(3) == 0 {
		q.Match = func(tx *engine.Transaction) bool { return tx.Installments == 2 }
		tests = append(tests, q.Match)
	}
	if r.IntN(3) == 0 {
		since := all[r.IntN(len(all))].CreatedAt
		q.Since = since
		tests = append(tests, func(tx *engine.Transaction) bool { return !tx.CreatedAt.Before(since) })
	}
	if r.IntN(3) == 0 {
		until := all[r.IntN(len(all))].CreatedAt
		q.Until = until
		tests = append(tests, func(tx *engine.Transaction) bool { return !tx.CreatedAt.After(until) })
	}
	return q, func(tx *engine.Transaction) bool {
		for _, test := range tests {
			if !test(tx) {
				return false
			}
		}
		return true
	}
}

// checkWalk goes to the last page and back.
func checkWalk(t *testing.T, a *store.Account, q store.Query[engine.Transaction], want []string) {
	t.Helper()
	var pages []page
	got := []string{}
	for {
		p := pageOf(t, a, q)
		require.Equal(t, len(want), p.Total)
		pages = append(pages, p)
		got = append(got, refs(p)...)
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	require.Equal(t, want, got)
	q.Prev = true
	for i := len(pages) - 1; i > 0; i-- {
		q.Cursor = pages[i].Prev
		require.Equal(t, refs(pages[i-1]), refs(pageOf(t, a, q)))
	}
	q.Prev, q.Cursor, q.Skip = false, "", 3
	require.Equal(t, want[min(3, len(want)):min(3+q.Limit, len(want))], refs(pageOf(t, a, q)))
	a.View(func(d *store.Data) { require.Len(t, d.Transactions.All(q), len(want)) })
}

// A resource can't be found by the values of its earlier versions.
func TestIndexesFollowTheLatestVersion(t *testing.T) {
	t.Parallel()
	a := newWorld(nil).Account("sk_test_1")
	put := func(c *engine.Customer) {
		require.Nil(t, refusalOf(a.Apply(func(*store.Data) (engine.Change, *engine.Refusal) {
			return engine.Change{Customers: []*engine.Customer{c}}, nil
		})))
	}
	customer := func(id, email, phone string) *engine.Customer {
		return &engine.Customer{Buyer: engine.Buyer{ID: id, Email: email, Phone: phone}}
	}
	found := func(email, phone string) (ids []string) {
		q := store.Query[engine.Customer]{Limit: 10}
		q.Is(store.CustomerEmail, email)
		q.Is(store.CustomerPhone, phone)
		a.View(func(d *store.Data) {
			p, err := d.Customers.Page(q)
			require.NoError(t, err)
			for _, c := range p.Rows {
				ids = append(ids, c.ID)
			}
			assert.Equal(t, len(ids), p.Total)
		})
		return ids
	}
	put(customer("1", "ana@shop.test", "11"))
	put(customer("2", "ana@shop.test", ""))
	put(customer("3", "ana@shop.test", "22"))
	assert.Equal(t, []string{"3", "2", "1"}, found("ana@shop.test", ""))
	assert.Equal(t, []string{"1"}, found("ana@shop.test", "11"), "with both values")

	put(customer("1", "bia@shop.test", "11"))
	put(customer("2", "ana@shop.test", "33"))
	assert.Equal(t, []string{"3", "2"}, found("ana@shop.test", ""))
	assert.Equal(t, []string{"1"}, found("bia@shop.test", "11"))
	assert.Equal(t, []string{"2"}, found("", "33"))
	put(customer("1", "", "11"))
	assert.Empty(t, found("bia@shop.test", ""), "no resource has this value any more")
	assert.Equal(t, []string{"1"}, found("", "11"))
}
