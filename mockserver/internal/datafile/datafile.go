// Package datafile is an append-only file of values with checksums. It survives
// the death of its process at any moment, and drops a value that was being
// written; it does not promise to survive the death of the machine.
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

// magic begins every file. There is no 3: a flipped bit would make it a 2.
const magic = "mockgateway data file 4\n"

// magicJSON begins a file of an earlier release, whose records are JSON. It is
// read and has to be compacted.
const magicJSON = "mockgateway data file 2\n"

// Errors of opening a file. A file that is refused is left as it is.
var (
	// ErrForeign is a file of something else.
	ErrForeign = errors.New("this is no data file of the mock gateway")
	// ErrDamaged is a record that is not what was written.
	ErrDamaged = errors.New("the data file is damaged")
	// ErrNotRegular is a path that names no file: a device, a directory, a pipe.
	ErrNotRegular = errors.New("this is not a regular file")
	// ErrInUse is a file that another process has open.
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

// Open locks the file at path and hands its values to replay in their order, each
// with the byte at which it ends. A last record that is cut short is dropped. The
// file is not changed until [File.Resume] or [File.Compact], one of which has to
// come before the first append.
//
// A symbolic link means the file that it points to, and stays one.
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

// target returns the path of the regular file that a path means, which may not
// exist yet.
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
		return "", fmt.Errorf("%s: %w: the symbolic link leads nowhere", path, ErrNotRegular)
	}
	return path, nil
}

// Resume goes on with the file that was opened. It reports false if there is none,
// or one of an earlier release: then [File.Compact] has to begin one.
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
	return true, f.undo() // a record that was cut short
}

// Compact replaces the file by one that holds the values that say the same as those
// appended before mark was called, and after them those that are appended later, also
// while it writes. It returns how many bytes the former take. A process that dies
// meanwhile leaves the old file.
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
		mark, f.stream = f.size, stream[T]{} // what follows is read without what came before
	})
	if err != nil {
		return 0, err
	}
	fresh := f.path + ".new"
	if err := removeLeftover(fresh); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside the user's own choice of file
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

// write begins a file with values.
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

// replace adds to a new file of a size what was appended from mark on, and puts it
// in the place of the old one.
func (f *File[T]) replace(file *os.File, size, mark int64) error {
	end := f.Size() // most of it while others append
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

// copyTo appends a part of the file to another.
func (f *File[T]) copyTo(to io.Writer, from, end int64) error {
	if f.file == nil || from >= end {
		return nil
	}
	_, err := io.Copy(to, io.NewSectionReader(f.file, from, end-from))
	return err
}

// removeLeftover removes the file of a process that died while it compacted.
// Anything but a regular file was created by another program.
func removeLeftover(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: move it away, the data file is written anew under this name", path, ErrNotRegular)
	}
	return os.Remove(path)
}

// Append writes a value in one piece. If that fails, the file is as it was,
// or takes nothing more.
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
			f.broken = fmt.Errorf("an earlier record was left in part: %w", errors.Join(err, undo))
		}
		return err
	}
	f.size += int64(len(framed))
	return nil
}

// undo takes back what a failed append wrote.
func (f *File[T]) undo() error {
	f.stream = stream[T]{}
	err := f.file.Truncate(f.size)
	_, seek := f.file.Seek(f.size, io.SeekStart)
	return errors.Join(err, seek)
}

// Size returns how long the file is, in bytes.
func (f *File[T]) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Close closes the file and lets others open it.
func (f *File[T]) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.compacting.Lock() // ends soon
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
