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
	// Valid is the result of [Verifier.Verify], and Error is its error: "" for
	// a valid delivery.
	Valid bool          `json:"valid"`
	Error DeliveryError `json:"error,omitzero"`
	// KeyID names the key that made the signature, as in [Event], or is "" if
	// it is unknown.
	KeyID string `json:"key_id,omitzero"`
	// Findings are the faults, in the order in which to fix them. An invalid
	// delivery has at least one.
	Findings []Finding `json:"findings"`
	// Incomplete reports that not every explanation was tried, because the
	// body is long or there are many keys.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Finding is one fault of a delivery.
type Finding struct {
	// Cause is the kind of fault: missing_header, wrong_header, repeated_header,
	// malformed_signature, malformed_timestamp, timestamp_milliseconds,
	// timestamp_too_old, timestamp_in_future, other_timestamp, signed_content,
	// empty_body, reencoded_body, altered_body, other_event, no_secret,
	// secret_expired, secret_form or wrong_secret.
	Cause  string `json:"cause"`
	Detail string `json:"detail"` // what was found
	Fix    string `json:"fix"`    // what to change
	// Proven reports that the signature is valid once this fault is undone.
	// Otherwise the finding is only the most likely explanation.
	Proven bool `json:"proven"`
}

// The causes of a [Finding].
const (
	causeMissingHeader         = "missing_header"         // one of the signature's headers is missing
	causeWrongHeader           = "wrong_header"           // the header arrived under another name
	causeRepeatedHeader        = "repeated_header"        // two timestamps, or more than 8 signatures
	causeMalformedSignature    = "malformed_signature"    // not "sha256=" and 64 lower-case hex digits
	causeMalformedTimestamp    = "malformed_timestamp"    // not Unix seconds
	causeTimestampMilliseconds = "timestamp_milliseconds" // milliseconds or a finer unit instead of seconds
	causeTimestampTooOld       = "timestamp_too_old"      // the signature is older than the tolerance
	causeTimestampInFuture     = "timestamp_in_future"    // it is further ahead of the clock than the tolerance
	causeOtherTimestamp        = "other_timestamp"        // the signature covers the body with another timestamp
	causeSignedContent         = "signed_content"         // what was signed is not timestamp, dot, body
	causeEmptyBody             = "empty_body"             // other code has already read the body
	causeReencodedBody         = "reencoded_body"         // the JSON was parsed and written again
	causeAlteredBody           = "altered_body"           // charset, line endings, white space, or a layer around the JSON
	causeOtherEvent            = "other_event"            // the signature belongs to the body of another event
	causeNoSecret              = "no_secret"              // no key was given
	causeSecretExpired         = "secret_expired"         // the key's NotAfter has passed
	causeSecretForm            = "secret_form"            // white space, quotes, a prefix or an encoding around the key
	causeWrongSecret           = "wrong_secret"           // no given key made the signature
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
		b.WriteString("\n" + strconv.Itoa(i+1) + ". " + f.Cause)
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

// Diagnose explains why [Verify] rejects a delivery: which header, secret,
// timestamp or byte of the body is wrong, and what to change. Give it the
// request as your handler got it. It undoes possible changes of the body until
// the signature matches, which takes thousands of signatures: call it manually
// or in development, never for every request that an untrusted sender can
// make.
//
// others are unchanged bodies of other events whose signature the delivery may
// carry.
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
	_ = errors.As(err, &x.error) // verify returns no other type
	if x.error == ErrStaleTimestamp {
		x.key = key
	}
	x.examine(others)
	return x.diagnosis()
}
