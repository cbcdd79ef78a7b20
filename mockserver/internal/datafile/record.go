package datafile

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A record is its length, the checksum of the length, the checksum of the
// content, and the content. The length has a checksum of its own, so that a
// damaged one is not taken for a record that ends beyond the file.
const headSize = 12

// begins is a flag in the length of a record that starts a segment.
const begins = 1 << 31

// maxRecord is far larger than any record.
const maxRecord = begins - 1

// segment is the size in bytes of a gob stream, which describes its types once. Each
// segment can be decoded on its own, so that all processors take part. The limit is
// in bytes rather than records because the records of a snapshot are long.
const segment = 4 << 20

// stream encodes values as records. The zero stream starts a segment.
type stream[T any] struct {
	buf  bytes.Buffer
	gob  *gob.Encoder
	left int // bytes until the next segment
}

// frame returns the record of a value. The bytes are valid until the next call.
func (s *stream[T]) frame(v T) ([]byte, error) {
	var flag uint32
	if s.left <= 0 {
		s.gob, s.left, flag = gob.NewEncoder(&s.buf), segment, begins
	}
	s.buf.Reset()
	s.buf.Write(make([]byte, headSize))
	err := s.gob.Encode(v)
	b := s.buf.Bytes()
	content := b[headSize:]
	if err == nil && len(content) > maxRecord {
		err = fmt.Errorf("a record of %d bytes can't be written", len(content))
	}
	if err != nil {
		s.left = 0 // the encoder may have written a type description
		return nil, err
	}
	s.left -= len(content)
	binary.BigEndian.PutUint32(b, uint32(len(content))|flag) //nolint:gosec // checked above
	binary.BigEndian.PutUint32(b[4:], checksum(b[:4]))
	binary.BigEndian.PutUint32(b[8:], checksum(content))
	return b, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// head is the header of a record.
type head struct {
	length   uint32 // of the content
	first    bool   // the record starts a segment
	checksum uint32 // of the content
}

// readHead reads the header of a record. The error is [io.ErrUnexpectedEOF] if the
// record is longer than the rest of the file.
func readHead(r io.Reader, rest int64) (head, error) {
	if rest < headSize {
		return head{}, io.ErrUnexpectedEOF
	}
	var b [headSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return head{}, err
	}
	length := binary.BigEndian.Uint32(b[:])
	h := head{length: length &^ begins, first: length >= begins, checksum: binary.BigEndian.Uint32(b[8:])}
	if checksum(b[:4]) != binary.BigEndian.Uint32(b[4:]) || h.length == 0 {
		return head{}, ErrDamaged
	}
	if rest-headSize < int64(h.length) {
		return head{}, io.ErrUnexpectedEOF
	}
	return h, nil
}

// appendContent reads the content after the header and appends it to b.
func (h head) appendContent(b []byte, r io.Reader) ([]byte, error) {
	start := len(b)
	b = slices.Grow(b, int(h.length))[:start+int(h.length)]
	if _, err := io.ReadFull(r, b[start:]); err != nil {
		return b, err
	}
	if checksum(b[start:]) != h.checksum {
		return b, ErrDamaged
	}
	return b, nil
}
