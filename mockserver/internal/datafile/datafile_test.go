package datafile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/datafile"
)

// open opens a file and returns its records.
func open(t *testing.T, path string) (*datafile.File, []string, error) {
	t.Helper()
	var records []string
	f, err := datafile.Open(path, func(record []byte) error {
		records = append(records, string(record))
		return nil
	})
	if err == nil {
		t.Cleanup(func() { _ = f.Close() })
	}
	return f, records, err
}

// written returns the content of a file of records.
func written(t *testing.T, records ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, f.Compact([]byte(records[0])))
	for _, r := range records[1:] {
		require.NoError(t, f.Append([]byte(r)))
	}
	require.NoError(t, f.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, content, 24+12*len(records)+len(fmt.Sprint(records))-len(records)-1)
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

func TestRecordsComeBackInOrder(t *testing.T) {
	t.Parallel()
	records, err := read(t, written(t, "one", "two", "three"))
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, records)
}

func TestAnAbsentOrEmptyFileHasNoRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, records, err := open(t, path)
	require.NoError(t, err)
	assert.Empty(t, records)
	require.ErrorIs(t, f.Append([]byte("x")), os.ErrClosed, "Compact comes first")
	require.NoError(t, f.Close())
	assert.NoFileExists(t, path)

	records, err = read(t, []byte{})
	require.NoError(t, err)
	assert.Empty(t, records)
}

// TestEveryCutAndEveryFlippedBit: a truncated file loses its last record only,
// and any other change is detected.
func TestEveryCutAndEveryFlippedBit(t *testing.T) {
	t.Parallel()
	content := written(t, "one", "two", "three")
	complete := map[int][]string{39: {"one"}, 54: {"one", "two"}, 71: {"one", "two", "three"}}
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
			if i < 24 {
				require.ErrorIs(t, err, datafile.ErrForeign, i)
			} else {
				require.ErrorIs(t, err, datafile.ErrDamaged, i)
			}
		}
	}
	_, err := read(t, append(bytes.Clone(content), make([]byte, 100)...))
	require.ErrorIs(t, err, datafile.ErrDamaged, "a tail of zeros")
}

func TestCompactKeepsOneRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f, _, err := open(t, path)
	require.NoError(t, err)
	require.NoError(t, f.Compact([]byte("state")))
	require.NoError(t, f.Append([]byte("more")))
	require.NoError(t, os.WriteFile(path+".new", []byte("of a process that died"), 0o600))
	require.NoError(t, f.Compact([]byte("new state")))
	require.NoError(t, f.Append([]byte("and more")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, info.Size(), f.Size())
	require.NoError(t, f.Close())
	_, records, err := open(t, path)
	require.NoError(t, err)
	assert.Equal(t, []string{"new state", "and more"}, records)
	assert.NoFileExists(t, path+".new")
}

func TestOneProcessAtATime(t *testing.T) {
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

func TestAReplayThatFailsNamesThePlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, written(t, "one", "two"), 0o600))
	no := errors.New("no such thing")
	_, err := datafile.Open(path, func(record []byte) error {
		if string(record) == "two" {
			return no
		}
		return nil
	})
	require.ErrorIs(t, err, no)
	require.ErrorContains(t, err, "record 2 at byte 39")
	_, err = datafile.Open(filepath.Join(path, "below"), nil)
	require.Error(t, err)
}

func TestEmptyRecordsAreRejected(t *testing.T) {
	t.Parallel()
	f, _, err := open(t, filepath.Join(t.TempDir(), "data"))
	require.NoError(t, err)
	require.Error(t, f.Compact(nil))
	require.NoError(t, f.Compact([]byte("x")))
	require.Error(t, f.Append(nil))
}

// A device or a pipe must not be replaced by a file, nor a symbolic link.
func TestOnlyARegularFileIsADataFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loose := filepath.Join(dir, "loose")
	require.NoError(t, os.Symlink(filepath.Join(dir, "absent"), loose))
	toNull := filepath.Join(dir, "null")
	require.NoError(t, os.Symlink(os.DevNull, toNull))
	for _, path := range []string{os.DevNull, dir, loose, toNull} {
		_, _, err := open(t, path)
		require.ErrorIs(t, err, datafile.ErrNotRegular, path)
		require.ErrorContains(t, err, path)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing is left beside them")
}

func TestASymbolicLinkToADataFileStaysOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "data"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	f, _, err := open(t, link)
	require.NoError(t, err)
	require.NoError(t, f.Compact([]byte("one")))
	_, _, err = open(t, file)
	require.ErrorIs(t, err, datafile.ErrInUse, "under its own name too")
	require.NoError(t, f.Close())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	_, records, err := open(t, file)
	require.NoError(t, err)
	assert.Equal(t, []string{"one"}, records)
}

// Compact replaces the temporary file of a process that died, and no other file
// beside the data file.
func TestCompactRemovesOnlyARegularLeftover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	precious := filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(precious, []byte("keep me"), 0o600))
	require.NoError(t, os.Symlink(precious, path+".new"))
	f, _, err := open(t, path)
	require.NoError(t, err)
	err = f.Compact([]byte("one"))
	require.ErrorIs(t, err, datafile.ErrNotRegular)
	require.ErrorContains(t, err, path+".new")
	_, err = os.Lstat(path + ".new")
	require.NoError(t, err, "the link must still be there")

	require.NoError(t, os.Remove(path+".new"))
	require.NoError(t, os.WriteFile(path+".new", []byte("half"), 0o600))
	require.NoError(t, f.Compact([]byte("one")))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, written(t, "one"), content)
}
