// Package datafile is an append-only file of records with checksums. It survives
// the death of its process at any moment, and drops a record that was being
// written; it does not promise to survive the death of the machine.
package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// magic begins every file.
const magic = "mockgateway data file 2\n"

// A record is its length, the checksum of the length, the checksum of the
// content, and the content. The length has a checksum of its own, so that a
// damaged one is not taken for a record that ends beyond the file.
const headSize = 12

// maxRecord is far above what a record can be; a snapshot is the largest.
const maxRecord = 1<<31 - 1

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

// File is an open data file. Its methods are safe for concurrent use.
type File struct {
	path string
	lock *os.File

	mu     sync.Mutex
	file   *os.File
	size   int64
	broken error // an append failed and could not be undone
}

// Open locks the file at path and hands its records to replay in their order. A
// last record that is cut short is dropped. The file is not changed until
// [File.Compact], which has to come before the first append.
//
// A symbolic link means the file that it points to, and stays one.
func Open(path string, replay func(record []byte) error) (*File, error) {
	path, err := target(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	f := &File{path: path, lock: lock}
	if err := f.read(replay); err != nil {
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

func (f *File) read(replay func([]byte) error) error {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(content, []byte(magic))
	if !ok {
		return ErrForeign
	}
	for n := 1; ; n++ {
		record, after, err := next(rest)
		if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && record == nil {
			return nil // torn, or the end
		}
		if err == nil {
			err = replay(record)
		}
		if err != nil {
			return fmt.Errorf("record %d at byte %d: %w", n, len(content)-len(rest), err)
		}
		rest = after
	}
}

// next takes the first record off b. A record that b cuts short is
// io.ErrUnexpectedEOF.
func next(b []byte) (record, rest []byte, err error) {
	switch {
	case len(b) == 0:
		return nil, nil, nil
	case len(b) < headSize:
		return nil, nil, io.ErrUnexpectedEOF
	}
	length, lengthSum := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if checksum(b[:4]) != lengthSum || length == 0 || length > maxRecord {
		return nil, nil, ErrDamaged
	}
	sum, content := binary.BigEndian.Uint32(b[8:]), b[headSize:]
	if uint64(len(content)) < uint64(length) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	if checksum(content[:length]) != sum {
		return nil, nil, ErrDamaged
	}
	return content[:length], content[length:], nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// frame returns a record as it is written.
func frame(record []byte) ([]byte, error) {
	if len(record) == 0 || len(record) > maxRecord {
		return nil, fmt.Errorf("a record of %d bytes can't be written", len(record))
	}
	b := make([]byte, headSize, headSize+len(record))
	binary.BigEndian.PutUint32(b, uint32(len(record))) //nolint:gosec // checked above
	binary.BigEndian.PutUint32(b[4:], checksum(b[:4]))
	binary.BigEndian.PutUint32(b[8:], checksum(record))
	return append(b, record...), nil
}

// Compact replaces the file by one with a single record that says the same as
// all of them. A process that dies meanwhile leaves the old file.
func (f *File) Compact(record []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	framed, err := frame(record)
	if err != nil {
		return err
	}
	fresh := f.path + ".new"
	if err := removeLeftover(fresh); err != nil {
		return err
	}
	file, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside the user's own choice of file
	if err != nil {
		return err
	}
	content := append([]byte(magic), framed...)
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync())
	if err == nil {
		err = os.Rename(fresh, f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(fresh))
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.size, f.broken = file, int64(len(content)), nil
	return nil
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

// Append writes a record in one piece. If that fails, the file is as it was,
// or takes nothing more.
func (f *File) Append(record []byte) error {
	framed, err := frame(record)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.broken != nil:
		return f.broken
	case f.file == nil:
		return os.ErrClosed
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
func (f *File) undo() error {
	err := f.file.Truncate(f.size)
	_, seek := f.file.Seek(f.size, io.SeekStart)
	return errors.Join(err, seek)
}

// Size returns how long the file is, in bytes.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Close closes the file and lets others open it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return errors.Join(err, f.lock.Close())
}
