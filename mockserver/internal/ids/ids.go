// Package ids generates the ids and codes of new resources.
package ids

import (
	"bytes"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Source generates ids and codes. With a seed, the same calls return the same ids.
// Without one, the source is seeded by the operating system and can't be predicted. It
// is safe for concurrent use.
type Source struct {
	mu     sync.Mutex
	random *rand.ChaCha8
	seeded bool
	begin  *[32]byte // where Restart begins; nil without a seed
}

// New returns a source that can't be predicted.
func New() *Source {
	var key [32]byte
	_, _ = cryptorand.Read(key[:]) // never returns an error: if it fails, the program crashes
	return &Source{random: rand.NewChaCha8(key)}
}

// Seeded returns a reproducible source.
func Seeded(seed uint64) *Source {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &Source{random: rand.NewChaCha8(key), seeded: true, begin: &key}
}

// Restart makes a seeded source repeat its ids from the first one. It does nothing to an
// unpredictable one.
func (s *Source) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin != nil {
		s.random, s.seeded = rand.NewChaCha8(*s.begin), true
	}
}

// UUID returns a version 7 UUID with the timestamp now, to the millisecond. UUIDs
// of the same millisecond are in no particular order.
func (s *Source) UUID(now time.Time) string {
	var id uuid.UUID
	s.fill(id[6:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, now.UnixMilli())))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0F | 0x70 // version 7
	id[8] = id[8]&0x3F | 0x80 // the variant of RFC 9562
	return id.String()
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Alphanumeric returns n characters of A-Z and 0-9, each as likely as any other.
func (s *Source) Alphanumeric(n int) string {
	var (
		out   = make([]byte, 0, n)
		buf   [32]byte
		limit = 256 - 256%len(alphanumeric) // larger bytes would favor the first characters
	)
	for len(out) < n {
		s.fill(buf[:])
		for _, b := range buf {
			if int(b) < limit && len(out) < n {
				out = append(out, alphanumeric[int(b)%len(alphanumeric)])
			}
		}
	}
	return string(out)
}

func (s *Source) fill(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.random.Read(b) // never fails
}

// MarshalBinary returns the state of a seeded source, and nil for an
// unpredictable one.
func (s *Source) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seeded {
		return nil, nil
	}
	return s.random.MarshalBinary()
}

// UnmarshalBinary restores the state that MarshalBinary returned. If it fails, the
// source is unchanged.
func (s *Source) UnmarshalBinary(state []byte) error {
	s.mu.Lock()
	same := !s.seeded && len(state) == 0
	s.mu.Unlock()
	if same {
		return nil
	}
	from := New()
	if from.seeded = len(state) > 0; from.seeded {
		if err := from.random.UnmarshalBinary(bytes.Clone(state)); err != nil {
			return fmt.Errorf("id source: damaged state: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random, s.seeded = from.random, from.seeded
	return nil
}

// EndToEndID returns the id that identifies a settled Pix payment at both banks:
// E, the payer's bank (an eight-digit ISPB, here one that no bank has), the time
// in UTC to the minute, and eleven random characters.
func (s *Source) EndToEndID(now time.Time) string {
	return "E99999999" + now.UTC().Format("200601021504") + s.Alphanumeric(11)
}
