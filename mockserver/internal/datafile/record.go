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

// A record consists of its length, the checksum of the length, the checksum of the
// content, and the content. The length has its own checksum so that a corrupt length is
// not mistaken for an incomplete last record.
const headerSize = 12

// segmentFlag marks the length of a record that starts a segment.
const segmentFlag = 1 << 31

// maxRecord is far larger than any record.
const maxRecord = segmentFlag - 1

// segment is the size in bytes of a gob stream, which describes its types once.
// Segments are independent of each other, so they are decoded in parallel. The limit is
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
		s.gob, s.left, flag = gob.NewEncoder(&s.buf), segment, segmentFlag
	}
	s.buf.Reset()
	s.buf.Write(make([]byte, headerSize))
	err := s.gob.Encode(v)
	b := s.buf.Bytes()
	content := b[headerSize:]
	if err == nil && len(content) > maxRecord {
		err = fmt.Errorf("a record of %d bytes is too long", len(content))
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

// header is the header of a record.
type header struct {
	length   uint32 // of the content
	first    bool   // the record starts a segment
	checksum uint32 // of the content
}

// readHeader reads the header of a record. The error is [io.ErrUnexpectedEOF] if the
// record is longer than the rest of the file.
func readHeader(r io.Reader, rest int64) (header, error) {
	if rest < headerSize {
		return header{}, io.ErrUnexpectedEOF
	}
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	length := binary.BigEndian.Uint32(b[:])
	h := header{length: length &^ segmentFlag, first: length >= segmentFlag, checksum: binary.BigEndian.Uint32(b[8:])}
	if checksum(b[:4]) != binary.BigEndian.Uint32(b[4:]) || h.length == 0 {
		return header{}, ErrDamaged
	}
	if rest-headerSize < int64(h.length) {
		return header{}, io.ErrUnexpectedEOF
	}
	return h, nil
}

// appendContent reads the content after the header and appends it to b.
func (h header) appendContent(b []byte, r io.Reader) ([]byte, error) {
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
