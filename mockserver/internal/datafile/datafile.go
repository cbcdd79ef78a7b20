// Package datafile implements an append-only file of values with checksums. The
// file stays consistent if the process is killed at any point: an incomplete last
// value is dropped. There is no such guarantee if the machine crashes.
package datafile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
)

// magic is the start of every file: what it is, and the version of its format.
const (
	magicName = "mockgateway data file "
	magic     = magicName + "4\n"
)

// Errors of [Open]. A rejected file is left unchanged.
var (
	// ErrForeign means that the file is not a data file.
	ErrForeign = errors.New("this is not a data file of the mock gateway")
	// ErrVersion means that the file has a format that this program does not know.
	ErrVersion = errors.New("the data file has a format that this version of the mock gateway does not read")
	// ErrDamaged means that a record differs from what was written.
	ErrDamaged = errors.New("the data file is damaged")
	// ErrNotRegular means that the path is not a regular file but a device, a
	// directory or a pipe.
	ErrNotRegular = errors.New("this is not a regular file")
	// ErrInUse means that another process has the file open.
	ErrInUse = errors.New("the data file is in use by another process")
)

// File is an open data file of values of type T. Its methods are safe for
// concurrent use.
type File[T any] struct {
	path string
	lock *os.File

	compacting sync.Mutex // held by Compact

	mu     sync.Mutex
	file   *os.File
	size   int64
	stream stream[T]
	broken error // an append failed and could not be undone
	closed bool
}

// Open locks the file at path and passes its values to replay in order, each with
// the offset of its end. An incomplete last record is dropped. The file is not
// changed until [File.Resume] or [File.Compact] is called; call one of them before
// the first append.
//
// Open follows symbolic links, and File never replaces them.
func Open[T any](path string, replay func(v T, end int64) error) (*File[T], error) {
	path, err := target(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	f := &File[T]{path: path, lock: lock}
	if f.size, err = read(path, replay); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// target resolves symbolic links. The result is the path of a regular file, which may
// not exist yet.
func target(path string) (string, error) {
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: %w", path, ErrNotRegular)
	case err == nil:
		return filepath.EvalSymlinks(path)
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s: %w: the target of the symbolic link does not exist", path, ErrNotRegular)
	}
	return path, nil
}

// Resume opens the existing file for appending. It reports false if there is no file:
// then call [File.Compact], which creates one.
func (f *File[T]) Resume() (ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size == 0 {
		return false, nil
	}
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	f.file = file
	return true, f.undo() // removes an incomplete record
}

// Compact replaces the file. The values that state returns take the place of all values
// that were appended before state called mark. Values appended since then follow them,
// including those appended during the compaction. Compact returns the size in bytes of
// the values from state. If the process dies in the meantime, the old file remains.
func (f *File[T]) Compact(state func(mark func()) (iter.Seq[T], error)) (size int64, err error) {
	f.compacting.Lock()
	defer f.compacting.Unlock()
	if f.isClosed() {
		return 0, os.ErrClosed
	}
	var mark int64
	values, err := state(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		mark, f.stream = f.size, stream[T]{} // later values can be decoded without earlier ones
	})
	if err != nil {
		return 0, err
	}
	fresh := f.path + ".new"
	if err := removeLeftover(fresh); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // next to the file that the user chose
	if err != nil {
		return 0, err
	}
	if size, err = f.write(file, values); err == nil {
		err = f.replace(file, size, mark)
	}
	if err != nil {
		return 0, errors.Join(err, file.Close(), os.Remove(fresh))
	}
	return size, nil
}

// write writes a new file with the given values.
func (f *File[T]) write(file *os.File, values iter.Seq[T]) (size int64, err error) {
	w := bufio.NewWriterSize(file, 1<<20)
	n, err := w.WriteString(magic)
	size = int64(n)
	var s stream[T]
	for v := range values {
		if err != nil {
			break
		}
		var framed []byte
		if framed, err = s.frame(v); err == nil {
			n, err = w.Write(framed)
			size += int64(n)
		}
		if f.isClosed() {
			err = os.ErrClosed
		}
	}
	return size, errors.Join(err, w.Flush())
}

func (f *File[T]) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// replace copies the values after mark from the old file to the new one, which has the
// given size, and renames the new file over the old one.
func (f *File[T]) replace(file *os.File, size, mark int64) error {
	end := f.Size() // most of it is copied without the lock, while others append
	if err := errors.Join(f.copyTo(file, mark, end), file.Sync()); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	if err := f.copyTo(file, end, f.size); err != nil {
		return err
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		return err
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.size, f.broken, f.stream = file, size+max(0, f.size-mark), nil, stream[T]{}
	return nil
}

// copyTo appends a part of the file to another file.
func (f *File[T]) copyTo(to io.Writer, from, end int64) error {
	if f.file == nil || from >= end {
		return nil
	}
	_, err := io.Copy(to, io.NewSectionReader(f.file, from, end-from))
	return err
}

// removeLeftover removes the temporary file of a process that died during a
// compaction. Anything but a regular file was created by another program.
func removeLeftover(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: move it away: compaction needs this name for a temporary file", path, ErrNotRegular)
	}
	return os.Remove(path)
}

// Append writes a value. If that fails, the file is restored; if it can't be
// restored, all later appends fail.
func (f *File[T]) Append(v T) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.broken != nil:
		return f.broken
	case f.file == nil:
		return os.ErrClosed
	}
	framed, err := f.stream.frame(v)
	if err != nil {
		return err
	}
	if _, err := f.file.Write(framed); err != nil {
		if undo := f.undo(); undo != nil {
			f.broken = fmt.Errorf("an earlier record was written only in part: %w", errors.Join(err, undo))
		}
		return err
	}
	f.size += int64(len(framed))
	return nil
}

// undo removes what a failed append has written.
func (f *File[T]) undo() error {
	f.stream = stream[T]{}
	err := f.file.Truncate(f.size)
	_, seek := f.file.Seek(f.size, io.SeekStart)
	return errors.Join(err, seek)
}

// Size returns the size of the file in bytes.
func (f *File[T]) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Close closes and unlocks the file.
func (f *File[T]) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.compacting.Lock() // a running compaction stops soon
	defer f.compacting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return errors.Join(err, f.lock.Close())
}
