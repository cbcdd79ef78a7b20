package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrCorrupt reports a journal that was changed or damaged. Nothing is sent.
var ErrCorrupt = errors.New("intent: the journal is damaged")

// line is a line of the journal. Sum covers the entry and the sum of the line before,
// so that a line can't be changed, removed or moved unnoticed.
type line struct {
	Sum   string          `json:"sum"`
	Entry json.RawMessage `json:"entry"`
}

// entry is one event: an intent as it was after it.
type entry struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Intent *Intent   `json:"intent"`
}

// file is an append-only file that several processes share.
type file struct {
	f      *os.File
	path   string
	offset int64  // of the end of the last line that was read
	sum    string // of that line
	broken error  // after a failed write it is not known what the file contains
}

func openFile(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("intent: journal: %w", err)
	}
	if err := checkMode(f); err == nil {
		err = syncFolder(path)
		if err == nil {
			return &file{f: f, path: path}, nil
		}
	} else if closeErr := f.Close(); closeErr != nil {
		return nil, errors.Join(err, closeErr)
	} else {
		return nil, err
	}
	return nil, errors.Join(fmt.Errorf("intent: journal: can't sync the folder of %s", path), f.Close())
}

// checkMode rejects a journal that others can read: it has payees and buyers.
func checkMode(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("intent: journal: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("intent: journal: %s must be a regular file", f.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("intent: journal: %s must have mode 0600, and has %#o", f.Name(), info.Mode().Perm())
	}
	return nil
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// read passes the entries that were appended since the last call to apply. The caller
// has the lock, so a last line without its end was torn by a crash: it is left out, and
// the next append overwrites it.
func (f *file) read(apply func(*entry)) error {
	if f.broken != nil {
		return f.broken
	}
	if err := f.same(); err != nil {
		return err
	}
	content, err := io.ReadAll(io.NewSectionReader(f.f, f.offset, 1<<62))
	if err != nil {
		return fmt.Errorf("intent: journal: %w", err)
	}
	for {
		text, rest, ok := bytes.Cut(content, []byte("\n"))
		if !ok {
			return nil
		}
		var l line
		var e entry
		if json.Unmarshal(text, &l) != nil || hash(f.sum, string(l.Entry)) != l.Sum || json.Unmarshal(l.Entry, &e) != nil || e.Intent == nil {
			return fmt.Errorf("%w: %s at byte %d", ErrCorrupt, f.path, f.offset)
		}
		apply(&e)
		f.sum, f.offset, content = l.Sum, f.offset+int64(len(text))+1, rest
	}
}

// same checks that the path still names the open file, with everything that was read.
func (f *file) same() error {
	opened, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("intent: journal: %w", err)
	}
	named, err := os.Stat(f.path)
	if err != nil || !os.SameFile(opened, named) {
		return fmt.Errorf("%w: %s was replaced: restart the process", ErrCorrupt, f.path)
	}
	if opened.Size() < f.offset {
		return fmt.Errorf("%w: %s was truncated", ErrCorrupt, f.path)
	}
	return nil
}

// append writes an entry and returns when it is on disk.
func (f *file) append(e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("intent: journal: %w", err)
	}
	sum := hash(f.sum, string(text))
	whole, err := json.Marshal(line{sum, text})
	if err != nil {
		return fmt.Errorf("intent: journal: %w", err)
	}
	whole = append(whole, '\n')
	if err = f.f.Truncate(f.offset); err == nil { // a torn line
		_, err = f.f.WriteAt(whole, f.offset)
	}
	if err == nil {
		err = f.f.Sync()
	}
	if err != nil {
		f.broken = fmt.Errorf("intent: journal: %w", err)
		return f.broken
	}
	f.offset += int64(len(whole))
	f.sum = sum
	return nil
}
