package shop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Record is what one commit changes: the members that are set replace what the
// store had under their ids.
type Record struct {
	Order        *Order        `json:"order,omitempty"`
	Subscription *Subscription `json:"subscription,omitempty"`
	Payout       *Payout       `json:"payout,omitempty"`
	Event        string        `json:"event,omitempty"` // the id of a handled event
}

// Store keeps records. Append returns when the record survives a crash; after an
// error or a crash the record is there as a whole or not at all. The shop calls it
// for one record at a time.
type Store interface {
	Load(each func(Record)) error
	Append(r Record) error
}

// File is a store in a file of JSON lines.
type File struct{ file *os.File }

// OpenFile opens or creates a file. A last line that a crash cut off was never
// acknowledged, and is removed.
func OpenFile(path string) (*File, error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	end := int64(bytes.LastIndexByte(text, '\n') + 1)
	if err := file.Truncate(end); err != nil {
		return nil, err
	}
	_, err = file.Seek(end, io.SeekStart)
	return &File{file}, err
}

// Load passes every record, the oldest first.
func (f *File) Load(each func(Record)) error {
	end, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(io.NewSectionReader(f.file, 0, end))
	for {
		var r Record
		switch err := dec.Decode(&r); err {
		case nil:
			each(r)
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("%s: %w", f.file.Name(), err)
		}
	}
}

// Append writes a record and waits until it is on the disk.
func (f *File) Append(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err = f.file.Write(append(line, '\n')); err == nil {
		err = f.file.Sync()
	}
	if err != nil { // e.g. a full disk: half a line must not stay in front of the next one
		_ = f.file.Truncate(at)
		_, _ = f.file.Seek(at, io.SeekStart)
	}
	return err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
