package sqlstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// statements executes calls whose arguments are numbers. Each takes a millisecond.
type statements struct {
	mu      sync.Mutex
	sizes   []int // of the executed statements
	running int
	most    int
	singles func(n int) error
	several func(args []int) ([]result[int], error)
}

func (s *statements) execute(size int) func() {
	s.mu.Lock()
	s.sizes = append(s.sizes, size)
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	return func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}
}

func (s *statements) batches() *batches[int, int] {
	one := func(_ context.Context, n int) (int, error) {
		defer s.execute(1)()
		if s.singles != nil {
			return 10 * n, s.singles(n)
		}
		return 10 * n, nil
	}
	all := func(_ context.Context, args []int) (results []result[int], err error) {
		defer s.execute(len(args))()
		if s.several != nil {
			return s.several(args)
		}
		for _, n := range args {
			results = append(results, result[int]{10 * n, true})
		}
		return results, nil
	}
	return newBatches(database.DialectPostgres, make(chan struct{}, maxAlone), one, all)
}

// calls makes n calls at once and returns their errors.
func calls(t *testing.T, b *batches[int, int], n int) (failed map[int]error) {
	t.Helper()
	failed = make(map[int]error)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			got, err := b.do(t.Context(), i)
			if err == nil {
				assert.Equal(t, 10*i, got)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed[i] = err
		})
	}
	all.Wait()
	return failed
}

func TestCallsAreExecutedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &statements{}
		b := s.batches()
		began := time.Now()
		assert.Empty(t, calls(t, b, 600))
		// Two at once, then 256 and 256, then the rest.
		assert.Equal(t, []int{1, 1, 256, 256, 86}, s.sizes)
		assert.Equal(t, 3*time.Millisecond, time.Since(began))
		assert.Equal(t, 2, s.most)

		s.sizes, began = nil, time.Now()
		assert.Empty(t, calls(t, b, 1), "a call by itself waits for nothing")
		assert.Equal(t, []int{1}, s.sizes)
		assert.Equal(t, time.Millisecond, time.Since(began))
	})
}

// What ends claims has one statement at a time, for all whose goroutines are ready.
func TestReadyCallsAreExecutedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &statements{}
		b := s.batches()
		b.flights, b.yields = 1, true
		assert.Empty(t, calls(t, b, 600))
		assert.Equal(t, 1, s.most)
		assert.LessOrEqual(t, len(s.sizes), 4, "%v", s.sizes)
		all := 0
		for _, size := range s.sizes {
			all += size
		}
		assert.Equal(t, 600, all)

		s.sizes = nil
		assert.Empty(t, calls(t, b, 1))
		assert.Equal(t, []int{1}, s.sizes)
	})
}

func TestCallsOfAFailedBatchAreExecutedByThemselves(t *testing.T) {
	t.Parallel()
	bad := errors.New("17 is bad")
	for name, several := range map[string]func(args []int) ([]result[int], error){
		"an error":       func([]int) ([]result[int], error) { return nil, errors.New("one of them is bad") },
		"a panic":        func([]int) ([]result[int], error) { panic("a driver") },
		"none succeeded": func(args []int) ([]result[int], error) { return make([]result[int], len(args)), nil },
		"every other one": func(args []int) ([]result[int], error) {
			results := make([]result[int], len(args))
			for i := range args {
				results[i] = result[int]{10 * args[i], i%2 == 0 && args[i] != 17}
			}
			return results, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &statements{several: several, singles: func(n int) error {
					if n == 17 {
						return bad
					}
					return nil
				}}
				b := s.batches()
				assert.Equal(t, map[int]error{17: bad}, calls(t, b, 200))
				assert.LessOrEqual(t, s.most, maxAlone+2)
				assert.Equal(t, map[int]error{17: bad}, calls(t, b, 20), "later calls")
			})
		})
	}
}

// Another session may have locked a row for long: the calls about other rows wait
// for a moment only, and every call ends with its own context.
func TestALockedRowDoesNotBlockOtherCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locked := make(chan struct{})
		s := &statements{singles: func(n int) error {
			if n < 0 {
				<-locked
			}
			return nil
		}}
		b := s.batches()
		var all sync.WaitGroup
		for _, n := range []int{-1, -2, -3} {
			all.Go(func() {
				_, err := b.do(t.Context(), n)
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.do(ctx, 4)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began), "a call that waits ends with its context")

		assert.Empty(t, calls(t, b, 10))
		assert.Less(t, time.Since(began), batchTimeout+10*time.Millisecond)
		close(locked)
		all.Wait()
	})
}

func TestArraysOfPostgreSQL(t *testing.T) {
	t.Parallel()
	var texts, numbers, raw array
	for _, s := range []string{"a", "", `{"b,c\"}`, "NULL", "ä\n"} {
		texts.text(s)
	}
	numbers.number(-1)
	numbers.number(2)
	raw.bytes(nil)
	raw.bytes([]byte{})
	raw.bytes([]byte{0xff, 0})
	assert.Equal(t, `{"a","","{\"b,c\\\"}","NULL","ä`+"\n"+`"}`, texts.String())
	assert.Equal(t, `{-1,2}`, numbers.String())
	assert.Equal(t, `{NULL,"","ff00"}`, raw.String())
}
