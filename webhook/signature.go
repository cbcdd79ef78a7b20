package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// The default names of the signature headers.
const (
	DefaultTimestampHeader = "X-Gateway-Timestamp"
	DefaultSignatureHeader = "X-Gateway-Signature"
)

// Tolerance is the default for the largest accepted difference between a
// signature's timestamp and the receiver's clock, in either direction and
// inclusive.
const Tolerance = 300 * time.Second

// maxSignatures limits the signatures of one delivery. While the gateway
// rotates its secret it sends two.
const maxSignatures = 8

// minSigningKey is the shortest key in bytes that [New] accepts. The gateway's
// secrets are longer: a shorter one is a placeholder or has been truncated.
const minSigningKey = spec.MinSigningKey

const signaturePrefix = "sha256="

// SigningKey is a secret shared with the gateway. During a rotation a receiver
// has two: the new one, and the old one with a NotAfter.
type SigningKey struct {
	// ID names the key in [Event] and [Observation], so you can see when the
	// old key is no longer used. It is logged, so it must not be the secret.
	// The default is the key's position in the list: "Keys[0]".
	ID       string
	Key      gateway.Secret
	NotAfter time.Time // the last time at which the key is accepted; zero means no expiry
}

func (k *SigningKey) accepted(now time.Time) bool {
	return !k.Key.IsZero() && (k.NotAfter.IsZero() || !now.After(k.NotAfter))
}

// keyID returns the name of the ith key.
func keyID(keys []SigningKey, i int) string {
	return cmp.Or(keys[i].ID, "Keys["+strconv.Itoa(i)+"]")
}

// HeaderNames are the names of the signature headers; an empty name means its
// default.
type HeaderNames struct {
	Timestamp string
	Signature string
}

func (n HeaderNames) timestamp() string { return cmp.Or(n.Timestamp, DefaultTimestampHeader) }
func (n HeaderNames) signature() string { return cmp.Or(n.Signature, DefaultSignatureHeader) }

// check rejects names that no request can have, such as one that was copied with
// its colon: every delivery would seem to be unsigned.
func (n HeaderNames) check() error {
	for field, name := range map[string]string{"Timestamp": n.timestamp(), "Signature": n.signature()} {
		for i := range len(name) {
			if !isTokenByte(name[i]) {
				return fmt.Errorf("webhook: Headers.%s is %q, which is not the name of a header", field, name)
			}
		}
	}
	if strings.EqualFold(n.timestamp(), n.signature()) {
		return fmt.Errorf("webhook: Headers.Timestamp and Headers.Signature are both %q", n.signature())
	}
	return nil
}

// isTokenByte reports whether a header's name may contain b (RFC 9110, section 5.6.2).
func isTokenByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}

// Sign returns the values of the timestamp and the signature header for body:
// Unix seconds in decimal, and "sha256=" with the lower-case hex of
// HMAC-SHA256(key, timestamp + "." + body).
func Sign(key gateway.Secret, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	return timestamp, mac(key, timestamp, body)
}

func mac(key gateway.Secret, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = h.Write([]byte(timestamp + ".")) // a hash never fails
	_, _ = h.Write(body)
	return signaturePrefix + hex.EncodeToString(h.Sum(nil))
}

// Verify checks the signature of a delivery against the secrets, with the default
// header names and the wall clock. The error is [ErrMissingSignature],
// [ErrInvalidSignature] or [ErrStaleTimestamp]. Pass the body exactly as it
// was received: JSON that was decoded and encoded again is a different body.
func Verify(header http.Header, body []byte, secrets ...gateway.Secret) error {
	keys := make([]SigningKey, len(secrets))
	for i, s := range secrets {
		keys[i].Key = s
	}
	return (&Verifier{Keys: keys}).Verify(header, body)
}

// Verifier checks signatures like [Verify], and supports keys that expire and a
// custom tolerance, clock and header names.
type Verifier struct {
	Keys      []SigningKey // any of them may have signed; empty keys are ignored
	Headers   HeaderNames
	Tolerance time.Duration    // 0 means the constant Tolerance; truncated to whole seconds
	Now       func() time.Time // nil means time.Now
}

// Signed reports whether the delivery claims to be signed: it has at least one
// of the two headers, with a value.
func (v *Verifier) Signed(header http.Header) bool {
	return len(values(header, v.Headers.signature())) > 0 || len(values(header, v.Headers.timestamp())) > 0
}

// Verify checks the signature of a delivery. The error is
// [ErrMissingSignature], [ErrInvalidSignature] or [ErrStaleTimestamp]; the last
// one means that the signature is valid, but its timestamp is outside the
// tolerance or not a time. Blank headers count as missing.
//
// While the gateway rotates its secret, a delivery may carry up to 8
// signatures, in repeated headers or in one header separated by commas or
// spaces. One of them must match. There is only one timestamp. Equal copies of a
// signature or timestamp, which proxies make, count as one.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	_, err := v.verify(header, body)
	return err
}

// VerifiedBy is like [Verifier.Verify], and also returns the ID of the key
// that made the signature. If several keys did, it is the first one in Keys.
func (v *Verifier) VerifiedBy(header http.Header, body []byte) (id string, err error) {
	i, err := v.verify(header, body)
	if err != nil {
		return "", err
	}
	return keyID(v.Keys, i), nil
}

// verify returns the index of the key that made the signature.
func (v *Verifier) verify(header http.Header, body []byte) (key int, err error) {
	s, err := v.stampOf(header)
	if err != nil {
		return 0, err
	}
	now := v.now()
	key, ok := v.match(s, body, now)
	if !ok {
		return 0, ErrInvalidSignature
	}
	at, ok := unixSeconds(s.timestamp)
	if !ok || !v.tolerates(at, now) { // signed, but no time within the tolerance
		return key, ErrStaleTimestamp
	}
	return key, nil
}

func (v *Verifier) now() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}

// tolerates reports whether the timestamp is close enough to the clock.
func (v *Verifier) tolerates(at int64, now time.Time) bool {
	window := int64(cmp.Or(v.Tolerance, Tolerance) / time.Second)
	age := now.Unix() - at
	return age <= window && age >= -window
}

// stamp is what the signature headers of a delivery say.
type stamp struct {
	timestamp  string
	signatures []string
}

// stampOf reads the signature headers. The error is [ErrMissingSignature], or
// [ErrInvalidSignature] if no body can be valid.
func (v *Verifier) stampOf(header http.Header) (s stamp, err error) {
	signatures := values(header, v.Headers.signature())
	timestamps := splitTimestamps(lines(header, v.Headers.timestamp()))
	if len(signatures) == 0 || len(timestamps) == 0 {
		return s, ErrMissingSignature
	}
	// With two timestamps it is unknown which one was signed, so neither is
	// used.
	if len(timestamps) > 1 {
		return s, ErrInvalidSignature
	}
	candidates, ok := splitSignatures(signatures) // no signatures are used if there are too many
	if !ok || !slices.ContainsFunc(candidates, wellFormed) {
		return s, ErrInvalidSignature
	}
	return stamp{timestamps[0], candidates}, nil
}

// plausible reports whether a delivery with this stamp may be valid: anyone can
// make such a stamp, but only on purpose.
func (v *Verifier) plausible(s stamp) bool {
	at, ok := unixSeconds(s.timestamp)
	return ok && v.tolerates(at, v.now())
}

// wellFormed reports whether a signature has the length of a valid one.
func wellFormed(signature string) bool {
	return len(signature) == len(signaturePrefix)+2*sha256.Size && strings.HasPrefix(signature, signaturePrefix)
}

// splitSignatures returns the different signatures in the values of the header.
// It reports false if there are too many.
func splitSignatures(headers []string) (list []string, ok bool) {
	for _, h := range headers {
		for one := range strings.FieldsFuncSeq(h, func(r rune) bool { return r == ',' || r == ' ' }) {
			if slices.Contains(list, one) {
				continue
			}
			if len(list) == maxSignatures {
				return nil, false
			}
			list = append(list, one)
		}
	}
	return list, true
}

// splitTimestamps returns the different timestamps in the values of the header.
// Proxies join repeated headers with a comma, which dates have too.
func splitTimestamps(headers []string) (list []string) {
	for _, h := range headers {
		parts := strings.Split(h, ",")
		if slices.ContainsFunc(parts, notSeconds) {
			parts = []string{h}
		}
		for _, one := range parts {
			if one = strings.TrimSpace(one); one != "" && !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return list
}

func notSeconds(s string) bool {
	_, ok := unixSeconds(strings.TrimSpace(s))
	return !ok
}

// match returns the index of the first key that made one of the signatures.
// Each key's MAC is computed only once, so additional signatures are cheap.
func (v *Verifier) match(s stamp, body []byte, now time.Time) (key int, ok bool) {
	for i, k := range v.Keys {
		if !k.accepted(now) {
			continue
		}
		want := []byte(mac(k.Key, s.timestamp, body))
		if slices.ContainsFunc(s.signatures, func(s string) bool { return hmac.Equal(want, []byte(s)) }) {
			return i, true
		}
	}
	return 0, false
}

// values returns the values of a header that are not blank.
func values(header http.Header, name string) []string {
	found := lines(header, name)
	if slices.ContainsFunc(found, blank) {
		return slices.DeleteFunc(slices.Clone(found), blank)
	}
	return found
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// lines returns all values of a header. It also supports maps with lower-case
// names, such as those of cloud functions.
func lines(header http.Header, name string) (found []string) {
	canonical := http.CanonicalHeaderKey(name)
	if found := header[canonical]; len(found) > 0 {
		return found
	}
	for key, some := range header {
		if len(key) == len(name) && http.CanonicalHeaderKey(key) == canonical {
			found = append(found, some...)
		}
	}
	return found
}

// unixSeconds parses a timestamp strictly: up to twelve digits, which are
// enough until the year 33658.
func unixSeconds(s string) (n int64, ok bool) {
	if len(s) > 12 {
		return 0, false
	}
	digits, err := strconv.ParseUint(s, 10, 63)
	return int64(digits), err == nil
}
