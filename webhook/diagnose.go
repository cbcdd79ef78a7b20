package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// examination is one run of [Verifier.Diagnose].
type examination struct {
	v    *Verifier // with a fixed clock
	d    Delivery
	now  time.Time
	work int // remaining bytes that may be hashed

	error DeliveryError
	key   int // index of the key that made the signature, or -1
	tried int // bodies

	forms      []secretForm // of the keys
	signatures []signatureText
	timestamps []string // timestamps that may have been signed
	findings   []Finding
}

// maxWork limits the bytes that a diagnosis hashes: it takes a fraction of a
// second.
const maxWork = 48 << 20

// maxVaried is the maximum length of a body for which variants are tried.
const maxVaried = 1 << 20

func newExamination(v *Verifier, d Delivery) *examination {
	still := *v
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	still.Now = func() time.Time { return now }
	x := &examination{v: &still, d: d, now: now, work: maxWork, key: -1}
	x.forms = x.makeForms()
	return x
}

// keyID returns the name of a key, unless its ID would reveal a key.
func (x *examination) keyID(i int) string {
	id := keyID(x.v.Keys, i)
	if x.shows(id) {
		return "Keys[" + strconv.Itoa(i) + "]"
	}
	return id
}

// shows reports whether text contains a key, in any recognizable form.
func (x *examination) shows(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(x.forms, func(f secretForm) bool {
		return (len(f.wrong) == 0 || len(f.text) >= minSigningKey) && strings.Contains(text, strings.ToLower(f.text))
	})
}

func (x *examination) found(f ...Finding) { x.findings = append(x.findings, f...) }

func (x *examination) examine(others [][]byte) {
	x.readSignatures()
	x.readTimestamps()
	explained := x.explain(others)
	x.judgeTime()
	switch {
	case explained:
	case len(x.d.Body) == 0:
		x.found(emptyBody())
	case !x.signed():
	case len(x.forms) == 0:
		x.found(Finding{
			Cause:  causeNoSecret,
			Detail: "No key was given, or every key is empty.",
			Fix:    "Set the signing secret of the endpoint. If it comes from an environment variable, check that the variable is set.",
		})
	default:
		x.unexplained()
	}
}

func emptyBody() Finding {
	return Finding{
		Cause:  causeEmptyBody,
		Detail: "The body is empty.",
		Fix: "Something read the body before, such as a logger, a body parser or a framework's binding. " +
			"Keep the bytes that arrived and verify those.",
	}
}

// unexplained reports a signature that matched with none of the changes.
func (x *examination) unexplained() {
	if s := x.signatures; !slices.ContainsFunc(s, func(s signatureText) bool { return s.finding == nil }) {
		x.found(*s[0].finding)
	}
	x.found(x.suspicions()...)
	x.found(Finding{
		Cause: causeWrongSecret,
		Detail: fmt.Sprintf("No given key made the signature: %d key(s) were tried, in %d forms, with %d forms of the body.",
			len(x.v.Keys), len(x.forms), x.tried),
		Fix: "Compare the secret with that of this endpoint in this environment. If it is the same, the body is not what the gateway signed: " +
			"verify the bytes that arrived, before anything parses them.",
	})
}

// signed reports whether the delivery has a signature and a timestamp.
func (x *examination) signed() bool { return len(x.signatures) > 0 && len(x.timestamps) > 0 }

// explain looks for the fewest changes that make the signature match.
func (x *examination) explain(others [][]byte) bool {
	switch {
	case x.key >= 0: // the signature is valid: only the time is wrong
		for i := range x.findings {
			x.findings[i].Proven = true
		}
		return true
	case !x.signed():
		return false
	case len(x.d.Body) == 0:
		return x.searchOthers(others)
	}
	return x.search(0) || x.search(1) || x.searchOthers(others) || x.searchContents() || x.searchTimes() || x.search(2)
}

// search tries all combinations of the given number of changes of the body and
// the key.
func (x *examination) search(changes int) bool {
	tried := 0
	defer func() { x.tried = max(x.tried, tried) }()
	for v := range x.variants() {
		tried++
		body := 0
		if v.finding != nil {
			body = 1
		}
		for _, key := range x.forms {
			if body+len(key.wrong) != changes {
				continue
			}
			for _, ts := range x.timestamps {
				if s := x.match(key.text, []byte(ts+"."), v.body); s != nil {
					x.prove(key, s, v.explain())
					return true
				}
			}
			if x.work < 0 {
				return false
			}
		}
		if changes == 0 {
			break
		}
	}
	return false
}

// prove records the explanation of the signature; finding is nil if the body
// is unchanged. It also marks the findings about the headers as proven.
func (x *examination) prove(key secretForm, s *signatureText, finding *Finding) {
	x.key = key.index
	for i := range x.findings {
		x.findings[i].Proven = true
	}
	for _, f := range []*Finding{s.finding, x.inForm(key), finding, x.expired(key.index)} {
		if f != nil {
			f.Proven = true
			x.found(*f)
		}
	}
}

func (x *examination) expired(key int) *Finding {
	notAfter := x.v.Keys[key].NotAfter
	if notAfter.IsZero() || !x.now.After(notAfter) {
		return nil
	}
	return &Finding{
		Cause:  causeSecretExpired,
		Detail: x.keyID(key) + " made the signature, and its NotAfter has passed: " + notAfter.UTC().Format(time.RFC3339) + ".",
		Fix:    "The gateway still signs with this secret. Give it the new one, or extend NotAfter until it uses the new one.",
	}
}

// match returns the delivery's signature that is valid for the parts and a
// key, if any.
func (x *examination) match(key string, parts ...[]byte) *signatureText {
	h := hmac.New(sha256.New, []byte(key))
	x.work -= 2 * sha256.BlockSize
	for _, p := range parts {
		_, _ = h.Write(p) // a hash never fails
		x.work -= len(p)
	}
	sum := h.Sum(nil)
	for i := range x.signatures {
		if hmac.Equal(sum, x.signatures[i].mac) {
			return &x.signatures[i]
		}
	}
	return nil
}

// given yields the given keys while the work limit allows.
func (x *examination) given(yield func(secretForm) bool) {
	for _, key := range x.forms {
		if len(key.wrong) == 0 && (x.work < 0 || !yield(key)) {
			return
		}
	}
}

// searchOthers searches for the event that the signature belongs to.
func (x *examination) searchOthers(others [][]byte) bool {
	for _, other := range others {
		for key := range x.given {
			for _, ts := range x.timestamps {
				if s := x.match(key.text, []byte(ts+"."), other); s != nil {
					x.prove(key, s, x.ofOther(other))
					return true
				}
			}
		}
	}
	return false
}

// ofOther describes a signature that belongs to another body.
func (x *examination) ofOther(other []byte) *Finding {
	if len(x.d.Body) == 0 {
		return new(emptyBody())
	}
	ours, err := Parse(slices.Clone(x.d.Body))
	theirs, otherErr := Parse(slices.Clone(other))
	if err == nil && otherErr == nil && ours.ID == theirs.ID {
		return x.reencoded([]string{"bytes from number " + strconv.Itoa(firstDifference(x.d.Body, other)+1) + " on"})
	}
	name := "another event"
	if otherErr == nil && !x.shows(theirs.ID) {
		name = "event " + strconv.Quote(theirs.ID)
	}
	return &Finding{
		Cause:  causeOtherEvent,
		Detail: "The signature belongs to the body of " + name + ", not to this one.",
		Fix:    "Keep the headers and the body of a delivery together. Look for variables that concurrent requests share, and for fixtures that were mixed up.",
	}
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// searchContents checks whether the sender, such as a test, signs other
// content than the gateway does.
func (x *examination) searchContents() bool {
	for key := range x.given {
		for _, ts := range x.timestamps {
			for _, c := range []struct {
				name  string
				parts [][]byte
			}{
				{"the body without the timestamp", [][]byte{x.d.Body}},
				{"timestamp and body without a dot between them", [][]byte{[]byte(ts), x.d.Body}},
				{"timestamp, colon, body", [][]byte{[]byte(ts + ":"), x.d.Body}},
				{"timestamp, line break, body", [][]byte{[]byte(ts + "\n"), x.d.Body}},
				{"body, dot, timestamp", [][]byte{x.d.Body, []byte("." + ts)}},
			} {
				if s := x.match(key.text, c.parts...); s != nil {
					x.prove(key, s, &Finding{
						Cause:  causeSignedContent,
						Detail: "What was signed is " + c.name + ".",
						Fix:    `Sign the timestamp, a dot and the body: HMAC-SHA256(secret, timestamp + "." + body), as webhook.Sign does in Go.`,
					})
					return true
				}
			}
		}
	}
	return false
}

// searchTimes searches for a timestamp near the given one: the headers of two
// attempts may have been mixed.
func (x *examination) searchTimes() bool {
	const share = 4 // searchTimes may use 1/share of maxWork
	at, ok := x.time()
	if !ok {
		return false
	}
	budget := max(x.work-maxWork/share, 0)
	for n := int64(1); n <= int64((24*time.Hour)/time.Second); n++ {
		for _, other := range [...]int64{at - n, at + n} {
			for key := range x.given {
				s := x.match(key.text, []byte(strconv.FormatInt(other, 10)+"."), x.d.Body)
				if s != nil {
					x.prove(key, s, &Finding{
						Cause: causeOtherTimestamp,
						Detail: fmt.Sprintf("The signature was made with the timestamp %d, and the header %s says %d.",
							other, x.v.Headers.timestamp(), at),
						Fix: "Keep the headers of one attempt together: each attempt is signed anew, with its own timestamp. Your own code must not set the header.",
					})
					return true
				}
			}
		}
		if x.work < budget {
			return false
		}
	}
	return false
}

func (x *examination) diagnosis() Diagnosis {
	d := Diagnosis{Error: x.error, Findings: x.findings, Incomplete: x.work < 0 || len(x.d.Body) > maxVaried && x.key < 0}
	if x.key >= 0 {
		d.KeyID = x.keyID(x.key)
	}
	return d
}
