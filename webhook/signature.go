package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/gateway-go/gateway"
)

// The headers that carry a signature, where the operator of the gateway has
// not chosen other names.
const (
	DefaultTimestampHeader = "X-Gateway-Timestamp"
	DefaultSignatureHeader = "X-Gateway-Signature"
)

// Tolerance is how far a signature's timestamp may lie from the receiver's
// clock, in both directions, the boundary included.
const Tolerance = 300 * time.Second

const signaturePrefix = "sha256="

// SigningKey is a secret shared with the gateway. During a rotation a receiver
// knows two: the new one, and the old one with a NotAfter.
type SigningKey struct {
	Key      gateway.Secret
	NotAfter time.Time // the last moment at which the key is accepted; zero is for ever
}

// HeaderNames are the names of the signature's headers; an empty one stands
// for its default.
type HeaderNames struct {
	Timestamp string
	Signature string
}

func (n HeaderNames) timestamp() string {
	if n.Timestamp == "" {
		return DefaultTimestampHeader
	}
	return n.Timestamp
}

func (n HeaderNames) signature() string {
	if n.Signature == "" {
		return DefaultSignatureHeader
	}
	return n.Signature
}

// Sign returns the values of the timestamp and the signature header for body:
// Unix seconds in decimal, and "sha256=" with the lower-case hex of
// HMAC-SHA256(key, timestamp + "." + body).
func Sign(key gateway.Secret, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	var text [signatureSize]byte
	mac(&text, key, timestamp, body)
	return timestamp, string(text[:])
}

const signatureSize = len(signaturePrefix) + 2*sha256.Size

func mac(text *[signatureSize]byte, key gateway.Secret, timestamp string, body []byte) {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	var buf [32]byte
	_, _ = h.Write(append(append(buf[:0], timestamp...), '.')) // a hash never fails
	_, _ = h.Write(body)
	var sum [sha256.Size]byte
	copy(text[:], signaturePrefix)
	hex.Encode(text[len(signaturePrefix):], h.Sum(sum[:0]))
}

// Verify checks the signature of a delivery against the secrets, under the
// default header names and the wall clock. The error is
// [ErrMissingSignature], [ErrInvalidSignature] or [ErrStaleTimestamp].
//
// The body must be the bytes that arrived: one that was decoded and encoded
// again is a different body.
func Verify(header http.Header, body []byte, secrets ...gateway.Secret) error {
	var room [4]SigningKey
	keys := room[:0]
	for _, s := range secrets {
		keys = append(keys, SigningKey{Key: s})
	}
	return (&Verifier{Keys: keys}).Verify(header, body)
}

// Verifier checks signatures with keys that may end, other header names or
// another clock than [Verify] uses.
type Verifier struct {
	Keys    []SigningKey // any of them may have signed; an empty key never has
	Headers HeaderNames
	Now     func() time.Time // nil is time.Now
}

// Signed reports whether the delivery claims to be signed: it has at least one
// of the two headers.
func (v *Verifier) Signed(header http.Header) bool {
	return len(values(header, v.Headers.signature())) > 0 || len(values(header, v.Headers.timestamp())) > 0
}

// Verify checks the signature of a delivery. The error is
// [ErrMissingSignature], [ErrInvalidSignature] or [ErrStaleTimestamp]; the
// last one means that the signature is good and too old, or too new.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	signatures := values(header, v.Headers.signature())
	timestamps := values(header, v.Headers.timestamp())
	if len(signatures) == 0 || len(timestamps) == 0 {
		return ErrMissingSignature
	}
	// Which of two would the sender have signed? Better none than a guess.
	if len(signatures) > 1 || len(timestamps) > 1 {
		return ErrInvalidSignature
	}
	now := v.now()
	if !v.matches(signatures[0], timestamps[0], body, now) {
		return ErrInvalidSignature
	}
	at, ok := unixSeconds(timestamps[0])
	if !ok {
		return ErrInvalidSignature
	}
	const window = int64(Tolerance / time.Second)
	if age := now.Unix() - at; age > window || age < -window {
		return ErrStaleTimestamp
	}
	return nil
}

func (v *Verifier) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

func (v *Verifier) matches(signature, timestamp string, body []byte, now time.Time) bool {
	if len(signature) != signatureSize {
		return false
	}
	var text [signatureSize]byte
	for _, k := range v.Keys {
		if k.Key == "" || (!k.NotAfter.IsZero() && now.After(k.NotAfter)) {
			continue
		}
		mac(&text, k.Key, timestamp, body)
		if hmac.Equal(text[:], []byte(signature)) {
			return true
		}
	}
	return false
}

// values looks a header up by its canonical name, in maps too that were filled
// by hand with lower-case names, as those of cloud functions are.
func values(header http.Header, name string) []string {
	canonical := http.CanonicalHeaderKey(name)
	if found := header[canonical]; len(found) > 0 {
		return found
	}
	for key, found := range header {
		if len(key) == len(name) && http.CanonicalHeaderKey(key) == canonical {
			return found
		}
	}
	return nil
}

// unixSeconds is strict: digits only, as the gateway writes them. Twelve of
// them last until the year 33658.
func unixSeconds(s string) (n int64, ok bool) {
	if s == "" || len(s) > 12 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}
