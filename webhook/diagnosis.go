package webhook

import (
	"errors"
	"strconv"
	"strings"
)

// Diagnosis says why a delivery's signature is rejected, and what to change. It
// never contains a secret, a signature or a part of the body. JSON and String
// have the same content.
type Diagnosis struct {
	// Valid is what [Verifier.Verify] says, and Error is its error: "" for a valid
	// delivery.
	Valid bool          `json:"valid"`
	Error DeliveryError `json:"error,omitzero"`
	// KeyID names the key that made the signature, as [Event] does; "" if no
	// key is known to have made it.
	KeyID string `json:"key_id,omitzero"`
	// Findings are the faults, the one to fix first in front. A delivery that is
	// not valid has at least one.
	Findings []Finding `json:"findings"`
	// Incomplete reports that the body is so long, or the keys are so many, that not
	// every explanation was tried.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Finding is one fault of a delivery.
type Finding struct {
	Cause  Cause  `json:"cause"`
	Detail string `json:"detail"` // what was found
	Fix    string `json:"fix"`    // what to change
	// Proven reports that the signature was verified with this fault undone.
	// Otherwise it is the most likely explanation of what was found.
	Proven bool `json:"proven"`
}

// Cause is the kind of a [Finding].
type Cause string

// The causes.
const (
	CauseMissingHeader         Cause = "missing_header"         // one of the signature's headers is missing
	CauseWrongHeader           Cause = "wrong_header"           // it arrived under another name
	CauseRepeatedHeader        Cause = "repeated_header"        // two timestamps, or more than 8 signatures
	CauseMalformedSignature    Cause = "malformed_signature"    // not "sha256=" and 64 lower-case hex digits
	CauseMalformedTimestamp    Cause = "malformed_timestamp"    // not Unix seconds
	CauseTimestampMilliseconds Cause = "timestamp_milliseconds" // milliseconds, or finer, for seconds
	CauseTimestampTooOld       Cause = "timestamp_too_old"      // the signature is older than the tolerance
	CauseTimestampInFuture     Cause = "timestamp_in_future"    // it is further ahead of the clock than the tolerance
	CauseOtherTimestamp        Cause = "other_timestamp"        // the signature covers the body with another timestamp
	CauseSignedContent         Cause = "signed_content"         // what was signed is not timestamp, dot, body
	CauseEmptyBody             Cause = "empty_body"             // the body was read before
	CauseReencodedBody         Cause = "reencoded_body"         // the JSON was parsed and written again
	CauseAlteredBody           Cause = "altered_body"           // charset, line ends, white space, or a layer around the JSON
	CauseOtherEvent            Cause = "other_event"            // the signature belongs to the body of another event
	CauseNoSecret              Cause = "no_secret"              // there is no key that could have signed
	CauseSecretExpired         Cause = "secret_expired"         // the key's NotAfter has passed
	CauseSecretForm            Cause = "secret_form"            // white space, quotes, a prefix or an encoding around the key
	CauseWrongSecret           Cause = "wrong_secret"           // no given key made the signature
)

// String returns the diagnosis for people, one line for the result and three for
// each finding.
func (d Diagnosis) String() string {
	var b strings.Builder
	if d.Valid {
		b.WriteString("valid: signed with " + d.KeyID)
	} else {
		b.WriteString("rejected: " + string(d.Error))
	}
	for i, f := range d.Findings {
		b.WriteString("\n" + strconv.Itoa(i+1) + ". " + string(f.Cause))
		if f.Proven {
			b.WriteString(" (proven)")
		}
		b.WriteString("\n   " + f.Detail + "\n   Fix: " + f.Fix)
	}
	if d.Incomplete {
		b.WriteString("\nNot every explanation was tried: the body is long, or there are many keys.")
	}
	return b.String()
}

// Diagnose explains to a person why [Verify] rejects a delivery: which header,
// secret, timestamp or byte of the body is wrong, and what to change. Give it the
// request as your handler got it. It recognizes what was done to a body by doing
// it backwards until the signature matches, so it computes thousands of
// signatures: call it by hand or in development, never for each request that a
// stranger can send.
//
// others are bodies of other events, as they were sent, whose signature the
// delivery may carry.
func Diagnose(d Delivery, keys []SigningKey, others ...[]byte) Diagnosis {
	return (&Verifier{Keys: keys}).Diagnose(d, others...)
}

// Diagnose is the function Diagnose for the verifier's keys, header names,
// tolerance and clock.
func (v *Verifier) Diagnose(d Delivery, others ...[]byte) Diagnosis {
	x := newExamination(v, d)
	key, err := x.v.verify(d.Header, d.Body)
	if err == nil {
		return Diagnosis{Valid: true, KeyID: x.keyID(key), Findings: []Finding{}}
	}
	_ = errors.As(err, &x.error) // verify returns nothing else
	if x.error == ErrStaleTimestamp {
		x.key = key
	}
	x.examine(others)
	return x.diagnosis()
}
