package datafile_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/datafile"
)

// open opens a file and returns its records.
func open(t *testing.T, path string) (*datafile.File[string], []string, error) {
	t.Helper()
	var records []string
	f, err := datafile.Open(path, func(record string, _ int64) error {
		records = append(records, record)
		return nil
	})
	if err == nil {
		t.Cleanup(func() { _ = f.Close() })
	}
	return f, records, err
}

// overhead is the number of bytes that package gob adds to a short string.
const overhead = 4

// compact creates a file or replaces its content.
func compact(f *datafile.File[string], state ...string) error {
	_, err := f.Compact(func(mark func()) (iter.Seq[string], error) {
		mark()
		return slices.Values(state), nil
	})
	return err
}

// written returns the content of a file with the given records.
func written(t *testing.T, records ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, compact(f, records[0]))
	for _, r := range records[1:] {
		require.NoError(t, f.Append(r))
	}
	require.NoError(t, f.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	length := 24
	for _, r := range records {
		length += 12 + overhead + len(r)
	}
	assert.Len(t, content, length)
	return content
}

func read(t *testing.T, content []byte) ([]string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	f, records, err := open(t, path)
	if err == nil {
		require.NoError(t, f.Close())
	}
	after, readErr := os.ReadFile(path)
	require.NoError(t, readErr)
	assert.Equal(t, content, after, "reading changes nothing")
	return records, err
}

func TestRecordsAreReplayedInOrder(t *testing.T) {
	t.Parallel()
	records, err := read(t, written(t, "one", "two", "three"))
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, records)
}

func TestMissingOrEmptyFileHasNoRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, records, err := open(t, path)
	require.NoError(t, err)
	assert.Empty(t, records)
	require.ErrorIs(t, f.Append("x"), os.ErrClosed, "Compact must be called first")
	require.NoError(t, f.Close())
	assert.NoFileExists(t, path)

	records, err = read(t, []byte{})
	require.NoError(t, err)
	assert.Empty(t, records)
}

// TestTruncationAndCorruption cuts a file at every byte and flips every bit: only a
// truncated last record is dropped, and any other change is detected.
func TestTruncationAndCorruption(t *testing.T) {
	t.Parallel()
	content := written(t, "one", "two", "three")
	complete := map[int][]string{43: {"one"}, 62: {"one", "two"}, 83: {"one", "two", "three"}}
	var whole []string
	for n := 25; n <= len(content); n++ {
		if now, ok := complete[n]; ok {
			whole = now
		}
		records, err := read(t, content[:n])
		require.NoError(t, err, n)
		assert.Equal(t, whole, records, n)
	}
	for n := 1; n < 24; n++ {
		_, err := read(t, content[:n])
		require.ErrorIs(t, err, datafile.ErrForeign, n)
	}
	for i := range content {
		for bit := range 8 {
			damaged := bytes.Clone(content)
			damaged[i] ^= 1 << bit
			_, err := read(t, damaged)
			switch {
			case i < 22:
				require.ErrorIs(t, err, datafile.ErrForeign, i)
			case i < 24:
				require.ErrorIs(t, err, datafile.ErrVersion, i)
			default:
				require.ErrorIs(t, err, datafile.ErrDamaged, i)
			}
		}
	}
	_, err := read(t, append(bytes.Clone(content), make([]byte, 100)...))
	require.ErrorIs(t, err, datafile.ErrDamaged, "a tail of zeros")
}

func TestCompactReplacesTheRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, compact(f, "state"))
	require.NoError(t, f.Append("more"))
	require.NoError(t, os.WriteFile(path+".new", []byte("of a process that died"), 0o600))
	require.NoError(t, compact(f, "new state"))
	require.NoError(t, f.Append("and more"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, info.Size(), f.Size())
	require.NoError(t, f.Close())
	_, records, err := open(t, path)
	require.NoError(t, err)
	assert.Equal(t, []string{"new state", "and more"}, records)
	assert.NoFileExists(t, path+".new")
}

func TestDataFileIsLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	_, _, err = open(t, path)
	require.ErrorIs(t, err, datafile.ErrInUse)
	require.NoError(t, f.Close())
	_, _, err = open(t, path)
	require.NoError(t, err)
}

func TestReplayErrorsNameTheRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, written(t, "one", "two"), 0o600))
	no := errors.New("no such thing")
	_, err := datafile.Open(path, func(record string, _ int64) error {
		if record == "two" {
			return no
		}
		return nil
	})
	require.ErrorIs(t, err, no)
	require.ErrorContains(t, err, "record 2 at byte 43")
	_, err = datafile.Open[string](filepath.Join(path, "below"), nil)
	require.Error(t, err)
}

// Resume continues after the last complete record.
func TestResume(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	resumed, err := f.Resume()
	require.NoError(t, err)
	require.False(t, resumed, "there is no file yet")
	require.NoError(t, f.Close())

	content := written(t, "one", "two", "three")
	require.NoError(t, os.WriteFile(path, content[:len(content)-1], 0o600))
	for _, next := range []string{"four", "five"} {
		f, _, err = open(t, path)
		require.NoError(t, err)
		resumed, err = f.Resume()
		require.NoError(t, err)
		require.True(t, resumed)
		require.NoError(t, f.Append(next))
		require.NoError(t, f.Close())
	}
	_, records, err := open(t, path)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "four", "five"}, records)
}

// A file of another version is not read, nor taken for one that is damaged.
func TestAFileOfAnotherVersionIsRejected(t *testing.T) {
	t.Parallel()
	content := written(t, "one")
	for _, version := range []string{"1\n", "2\n", "5\n", "10\n"} {
		_, err := read(t, slices.Concat([]byte("mockgateway data file "+version), content[24:]))
		require.ErrorIs(t, err, datafile.ErrVersion, version)
		require.ErrorContains(t, err, `"mockgateway data file 4\n"`)
	}
}

// A file of several segments, written by several processes, is replayed in order.
func TestManyRecordsAreReplayedInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	var want []string
	for process := range 3 {
		f, records, err := open(t, path)
		require.NoError(t, err)
		require.Equal(t, want, records)
		if process == 0 {
			require.NoError(t, compact(f))
		} else {
			_, err := f.Resume()
			require.NoError(t, err)
		}
		for i := range 10_000 {
			want = append(want, fmt.Sprintf("%d of %d%500d", i, process, i))
			require.NoError(t, f.Append(want[len(want)-1]))
		}
		require.NoError(t, f.Close())
	}
	f, records, err := open(t, path)
	require.NoError(t, err)
	require.Equal(t, want, records)
	require.NoError(t, f.Close())

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[len(content)-1] ^= 1
	var n int
	require.NoError(t, os.WriteFile(path, content, 0o600))
	_, err = datafile.Open(path, func(string, int64) error { n++; return nil })
	require.ErrorIs(t, err, datafile.ErrDamaged)
	require.ErrorContains(t, err, "record 30000 at byte")
	assert.Equal(t, 29_999, n)
}

// Values that are appended during a compaction follow the compacted ones. None is lost
// or repeated.
func TestAppendsDuringCompaction(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, compact(f))
	var mu sync.Mutex // held while a value is appended and counted
	var all []string
	var work sync.WaitGroup
	for writer := range 3 {
		work.Go(func() {
			for i := range 3000 {
				mu.Lock()
				all = append(all, fmt.Sprintf("%d of %d", i, writer))
				if err := f.Append(all[len(all)-1]); err != nil {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	for range 5 {
		_, err := f.Compact(func(mark func()) (iter.Seq[string], error) {
			mu.Lock()
			defer mu.Unlock()
			mark()
			return slices.Values(slices.Clone(all)), nil
		})
		require.NoError(t, err)
	}
	work.Wait()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, info.Size(), f.Size())
	require.NoError(t, f.Close())
	require.ErrorIs(t, compact(f), os.ErrClosed)
	_, records, err := open(t, path)
	require.NoError(t, err)
	assert.Equal(t, all, records)
}

// A failed compaction leaves the file as it is, and later values are appended to it.
func TestFailedCompactionKeepsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, compact(f, "one"))
	no := errors.New("no")
	_, err = f.Compact(func(mark func()) (iter.Seq[string], error) {
		mark()
		return nil, no
	})
	require.ErrorIs(t, err, no)
	require.NoError(t, f.Append("two"))
	require.NoError(t, os.Mkdir(path+".new", 0o700))
	require.ErrorIs(t, compact(f, "three"), datafile.ErrNotRegular)
	require.NoError(t, f.Append("four"))
	require.NoError(t, f.Close())
	_, records, err := open(t, path)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "four"}, records)
}

// Devices, directories and symbolic links without a target must not be replaced.
func TestOnlyRegularFilesAreAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dangling := filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(dir, "absent"), dangling))
	toNull := filepath.Join(dir, "null")
	require.NoError(t, os.Symlink(os.DevNull, toNull))
	for _, path := range []string{os.DevNull, dir, dangling, toNull} {
		_, _, err := open(t, path)
		require.ErrorIs(t, err, datafile.ErrNotRegular, path)
		require.ErrorContains(t, err, path)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "no other file is created")
}

func TestSymbolicLinkIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "data"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	f, _, err := open(t, link)
	require.NoError(t, err)
	require.NoError(t, compact(f, "one"))
	_, _, err = open(t, file)
	require.ErrorIs(t, err, datafile.ErrInUse, "the lock applies to the file's own name too")
	require.NoError(t, f.Close())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	_, records, err := open(t, file)
	require.NoError(t, err)
	assert.Equal(t, []string{"one"}, records)
}

// Compact replaces the temporary file of a process that died, and no other file.
func TestCompactReplacesOnlyItsOwnLeftover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, []byte("keep me"), 0o600))
	require.NoError(t, os.Symlink(other, path+".new"))
	f, _, err := open(t, path)
	require.NoError(t, err)
	err = compact(f, "one")
	require.ErrorIs(t, err, datafile.ErrNotRegular)
	require.ErrorContains(t, err, path+".new")
	_, err = os.Lstat(path + ".new")
	require.NoError(t, err, "the link must still exist")

	require.NoError(t, os.Remove(path+".new"))
	require.NoError(t, os.WriteFile(path+".new", []byte("half"), 0o600))
	require.NoError(t, compact(f, "one"))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, written(t, "one"), content)
}
