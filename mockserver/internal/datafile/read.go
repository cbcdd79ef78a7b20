package datafile

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
)

// read passes the values of a file to replay, each with the offset of its end. It
// returns the size of the file without an incomplete last record, or 0 if there is none.
func read[T any](path string, replay func(v T, end int64) error) (size int64, err error) {
	file, err := os.Open(path) //nolint:gosec // the user chose the file
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	r := bufio.NewReaderSize(file, 1<<20)
	begin := make([]byte, len(magic))
	switch _, err := io.ReadFull(r, begin); {
	case err != nil || !bytes.HasPrefix(begin, []byte(magicName)):
		return 0, ErrForeign
	case string(begin) != magic:
		return 0, fmt.Errorf("%w: it begins with %q, and the files that it reads begin with %q: move the file away, or use the version that wrote it",
			ErrVersion, begin, magic)
	}
	s := &scan[T]{
		r: r, spare: make(chan *batch[T], runtime.GOMAXPROCS(0)+2), at: int64(len(magic)), end: info.Size(),
		out: make(chan *batch[T], runtime.GOMAXPROCS(0)), stop: make(chan struct{}),
	}
	go s.run()
	err = s.replay(replay)
	close(s.stop)
	for b := range s.out { // wait for the reader before the file is closed
		<-b.done
	}
	return s.at, err
}

// scan reads a file in batches, which are decoded in parallel.
type scan[T any] struct {
	r       io.Reader
	at, end int64 // in the file
	n       int   // records so far
	out     chan *batch[T]
	spare   chan *batch[T] // replayed batches, for reuse
	stop    chan struct{}
}

// batch is a segment of the file.
type batch[T any] struct {
	n       int     // records before it
	start   int64   // in the file
	content []byte  // of the records, without their headers
	ends    []int64 // of the records, in the file
	values  []T
	err     error         // of the record after values
	done    chan struct{} // closed when values are there
}

// batch returns an empty batch. If possible, it reuses the memory of a replayed one:
// otherwise the heap is a quarter larger after a restart.
func (s *scan[T]) batch() *batch[T] {
	b := &batch[T]{}
	select {
	case b = <-s.spare:
		clear(b.values)
	default:
	}
	*b = batch[T]{n: s.n, start: s.at, content: b.content[:0], ends: b.ends[:0], values: b.values[:0], done: make(chan struct{})}
	return b
}

func (s *scan[T]) run() {
	defer close(s.out)
	b := s.batch()
	for s.at < s.end {
		h, err := readHeader(s.r, s.end-s.at)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err == nil && s.n == 0 && !h.first {
			err = ErrDamaged
		}
		if err == nil && len(b.ends) > 0 && h.first {
			if !s.send(b) {
				return
			}
			b = s.batch()
		}
		if err == nil {
			b.content, err = h.appendContent(b.content, s.r)
		}
		if err != nil {
			b.err = withPosition(s.n, s.at, err)
			break
		}
		s.n++
		s.at += headerSize + int64(h.length)
		b.ends = append(b.ends, s.at)
	}
	s.send(b)
}

// send passes a batch to replay, and reports false if replay has stopped.
func (s *scan[T]) send(b *batch[T]) bool {
	go b.decode()
	select {
	case s.out <- b:
		return true
	case <-s.stop:
		<-b.done
		return false
	}
}

func (b *batch[T]) decode() {
	defer close(b.done)
	var r bytes.Reader
	d := gob.NewDecoder(&r)
	b.values = slices.Grow(b.values, len(b.ends))[:len(b.ends)]
	rest, at := b.content, b.start
	for i, end := range b.ends {
		length := end - at - headerSize
		r.Reset(rest[:length])
		if err := d.Decode(&b.values[i]); err != nil {
			b.values, b.err = b.values[:i], withPosition(b.n+i, at, fmt.Errorf("%w: %w", ErrDamaged, err))
			return
		}
		rest, at = rest[length:], end
	}
}

func (s *scan[T]) replay(replay func(v T, end int64) error) error {
	for b := range s.out {
		<-b.done
		at := b.start
		for i, v := range b.values {
			if err := replay(v, b.ends[i]); err != nil {
				return withPosition(b.n+i, at, err)
			}
			at = b.ends[i]
		}
		if b.err != nil {
			return b.err
		}
		select {
		case s.spare <- b:
		default:
		}
	}
	return nil
}

// withPosition adds the position of a record to its error. n records come before it.
func withPosition(n int, at int64, err error) error {
	return fmt.Errorf("record %d at byte %d: %w", n+1, at, err)
}
