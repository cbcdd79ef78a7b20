package webhook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signatureText is a signature as it was sent, parsed as far as possible.
type signatureText struct {
	mac     []byte
	finding *Finding // the error of its form, or nil
}

const aSignature = `"sha256=" and 64 lower-case hex digits`

func (x *examination) readSignatures() {
	name := x.v.Headers.signature()
	sent := x.sent(name, "signature", func(value string) bool {
		mac, _ := readSignature(value)
		return mac != nil
	})
	if list, ok := splitSignatures(sent); !ok {
		x.found(Finding{
			Cause:  causeRepeatedHeader,
			Detail: fmt.Sprintf("There are more than %d signatures.", maxSignatures),
			Fix:    "The gateway sends one, or two while it rotates its secret. Look for a proxy that adds headers.",
		})
	} else if sent != nil && len(list) == 0 {
		x.found(malformedSignature("The header is empty."))
	}
	var malformed *Finding
	for _, value := range sent {
		for one := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
			mac, wrong := readSignature(one)
			var f *Finding
			if wrong != "" {
				f = new(malformedSignature(wrong))
			}
			if mac != nil && len(x.signatures) < 4*maxSignatures {
				x.signatures = append(x.signatures, signatureText{mac, f})
			} else if malformed == nil {
				malformed = f
			}
		}
	}
	if len(x.signatures) == 0 && malformed != nil {
		x.found(*malformed)
	}
}

func malformedSignature(what string) Finding {
	return Finding{
		Cause:  causeMalformedSignature,
		Detail: what,
		Fix:    "Pass the header on as it arrived. If you make the signature yourself, write " + aSignature + ", as webhook.Sign does in Go.",
	}
}

// readSignature decodes the MAC of a signature and reports errors in its form.
// The MAC is nil if the signature can't be decoded.
func readSignature(text string) (mac []byte, wrong string) {
	digits, prefixed := strings.CutPrefix(text, signaturePrefix)
	if !prefixed {
		wrong = `The signature does not begin with "sha256=".`
		if i := strings.LastIndexAny(strings.TrimRight(text, "="), "=:"); i >= 0 {
			digits = text[i+1:]
		}
	}
	digits = strings.Trim(digits, `"'`)
	if sum, err := hex.DecodeString(digits); err == nil {
		switch {
		case len(sum) != sha256.Size:
			return nil, fmt.Sprintf("The signature has %d hex digits instead of %d.%s", len(digits), 2*sha256.Size, algorithmOf(len(sum)))
		case wrong == "" && text != signaturePrefix+strings.ToLower(digits):
			wrong = "The signature's hex digits are not in lower case, or are in quotes."
		}
		return sum, wrong
	}
	for _, sum := range base64Decoded[[]byte](digits) {
		if len(sum) == sha256.Size {
			return sum, "The signature is in base64 instead of hex."
		}
	}
	return nil, "The header contains no signature; expected " + aSignature + "."
}

// algorithmOf names the hash algorithm with the given output length.
func algorithmOf(size int) string {
	switch size {
	case 16:
		return " That is an MD5."
	case 20:
		return " That is a SHA-1."
	case 48:
		return " That is a SHA-384."
	case 64:
		return " That is a SHA-512."
	}
	return ""
}

func (x *examination) readTimestamps() {
	found := x.sent(x.v.Headers.timestamp(), "timestamp", looksLikeTime)
	sent := splitTimestamps(found)
	if len(found) > 0 && len(sent) == 0 {
		x.found(Finding{
			Cause:  causeMalformedTimestamp,
			Detail: "The timestamp is empty.",
			Fix:    "Pass the header on as it arrived.",
		})
	}
	if len(sent) > 1 {
		x.found(Finding{
			Cause:  causeRepeatedHeader,
			Detail: fmt.Sprintf("There are %d different timestamps; only one can be signed.", len(sent)),
			Fix:    "Look for a proxy or middleware that adds the header " + x.v.Headers.timestamp() + ".",
		})
	}
	for _, value := range sent[:min(len(sent), 4)] {
		x.timestamps = append(x.timestamps, value)
		if _, ok := unixSeconds(value); ok {
			continue
		}
		at, f := readTimestamp(value)
		x.found(f)
		if at > 0 {
			x.timestamps = append(x.timestamps, strconv.FormatInt(at, 10))
		}
	}
}

// readTimestamp reads a time in another form than Unix seconds. It returns 0
// if it can't.
func readTimestamp(text string) (at int64, f Finding) {
	f = Finding{
		Cause:  causeMalformedTimestamp,
		Detail: "The timestamp is not a number of Unix seconds in decimal digits.",
		Fix:    "Pass the header on as it arrived. If you make the signature yourself, sign and send Unix seconds, such as 1700000000.",
	}
	trimmed := strings.Trim(text, " \t\r\n\"'+")
	whole, _, _ := strings.Cut(trimmed, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && n > 0 {
		for digits, unit := range map[int]string{13: "milliseconds", 16: "microseconds", 19: "nanoseconds"} {
			if len(whole) != digits {
				continue
			}
			for range digits - len("1700000000") {
				n /= 10
			}
			f.Cause = causeTimestampMilliseconds
			f.Detail = "The timestamp has " + strconv.Itoa(digits) + " digits: it is in " + unit + ", but the gateway sends seconds."
			f.Fix = "Sign and send Unix seconds: in JavaScript Math.floor(Date.now() / 1000), in Go time.Now().Unix()."
		}
		return n, f
	}
	for _, layout := range []string{time.RFC3339, http.TimeFormat, time.RFC1123Z, time.DateTime} {
		if t, err := time.Parse(layout, trimmed); err == nil {
			f.Detail = "The timestamp is a date; the gateway sends Unix seconds."
			return t.Unix(), f
		}
	}
	return 0, f
}

func looksLikeTime(value string) bool {
	n, ok := unixSeconds(value)
	if !ok {
		n, _ = readTimestamp(value)
	}
	return n > 1e9 && n < 1e10
}

// sent returns the values of a header, or of the most similarly named header,
// and reports what is wrong.
func (x *examination) sent(name, what string, looks func(value string) bool) []string {
	if found := lines(x.d.Header, name); len(found) > 0 {
		return found
	}
	var candidates []string
	for _, other := range slices.Sorted(maps.Keys(x.d.Header)) {
		if x.mayStandFor(other, what) && slices.ContainsFunc(x.d.Header[other], looks) {
			candidates = append(candidates, other)
		}
	}
	if len(candidates) == 0 {
		x.found(x.missing(name, what))
		return nil
	}
	// Choose the name that is most similar to the expected one.
	slices.SortStableFunc(candidates, func(a, b string) int {
		return cmp.Compare(likeness(b, name), likeness(a, name))
	})
	x.found(x.renamed(name, candidates[0], what))
	return x.d.Header[candidates[0]]
}

// mayStandFor excludes unrelated headers from the search: a Date looks like a
// timestamp.
func (x *examination) mayStandFor(name, what string) bool {
	if x.shows(name) || strings.EqualFold(name, x.v.Headers.timestamp()) || strings.EqualFold(name, x.v.Headers.signature()) {
		return false
	}
	lower := strings.ToLower(name)
	return what == "signature" && lower != "authorization" ||
		strings.Contains(lower, "time") || strings.HasSuffix(lower, "-ts") || strings.HasSuffix(lower, "_ts")
}

// plainName normalizes a header name that a server may have changed.
func plainName(name string) string {
	return strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "http-")
}

// likeness counts the words that two names share. It is greatest for names
// that differ only in form.
func likeness(a, b string) (n int) {
	a, b = plainName(a), plainName(b)
	if a == b {
		return 1 << 10
	}
	for word := range strings.SplitSeq(a, "-") {
		if word != "x" && slices.Contains(strings.Split(b, "-"), word) {
			n++
		}
	}
	return n
}

func (x *examination) renamed(want, got, what string) Finding {
	f := Finding{
		Cause:  causeWrongHeader,
		Detail: "The header " + want + " is missing, and " + quotedName(got) + " contains a " + what + ".",
		Fix: "If your gateway uses that name, set Headers." + strings.ToUpper(what[:1]) + what[1:] + " of webhook.Config or webhook.Verifier to " +
			quotedName(got) + ". Otherwise keep the proxy from renaming it.",
	}
	if plainName(got) == plainName(want) {
		f.Detail = "The header " + want + " arrived as " + quotedName(got) + ", the spelling of CGI, WSGI and PHP."
		f.Fix = "Pass the headers on under their own names: " + want + "."
	}
	return f
}

func (x *examination) missing(name, what string) Finding {
	var names []string
	for other := range x.d.Header {
		if !x.shows(other) {
			names = append(names, quotedName(other))
		}
	}
	slices.Sort(names)
	const most = 12
	there := "The request has no headers at all"
	switch {
	case len(names) > most:
		there = "The request has " + strings.Join(names[:most], ", ") + " and others"
	case len(names) > 0:
		there = "The request has " + strings.Join(names, ", ")
	}
	return Finding{
		Cause:  causeMissingHeader,
		Detail: "The header " + name + " is missing, and no other header contains a " + what + ". " + there + ".",
		Fix: "Pass the gateway's headers to the receiver. Deliveries to a notify_url and to an endpoint without a secret are not signed: " +
			"for those use SignatureOrReadBack or ReadBackOnly.",
	}
}

// quotedName quotes a header's name, which an attacker may have chosen.
func quotedName(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most]
	}
	return strings.Trim(strconv.QuoteToASCII(name), `"`)
}

// time returns the time of the timestamp.
func (x *examination) time() (at int64, ok bool) {
	for _, ts := range x.timestamps {
		if at, ok = unixSeconds(ts); ok {
			return at, true
		}
	}
	return 0, false
}

// judgeTime reports a timestamp that is outside the tolerance.
func (x *examination) judgeTime() {
	at, ok := x.time()
	if !ok {
		return
	}
	tolerance := cmp.Or(x.v.Tolerance, Tolerance)
	window := int64(tolerance / time.Second)
	age := x.now.Unix() - at
	if age <= window && age >= -window {
		return
	}
	f := Finding{
		Cause:  causeTimestampTooOld,
		Detail: fmt.Sprintf("The timestamp is %s behind the receiver's clock; the tolerance is %v.", readable(age), tolerance),
		Fix: "If every delivery is too old, set the receiver's clock (NTP). If it is a recorded or queued delivery, verify it when it arrives, " +
			"or have the gateway deliver it again: each attempt is signed anew.",
		Proven: x.error == ErrStaleTimestamp || x.key >= 0,
	}
	if age < 0 {
		f.Cause = causeTimestampInFuture
		f.Detail = fmt.Sprintf("The timestamp is %s ahead of the receiver's clock; the tolerance is %v.", readable(-age), tolerance)
		f.Fix = "Set the receiver's clock (NTP)."
	}
	if zone := max(age, -age); zone%1800 <= window && zone >= 1800 && zone <= 14*3600+window {
		f.Detail += " That is about a time zone's offset: is a local time used as UTC?"
	}
	x.found(f)
}

// readable formats seconds for people.
func readable(seconds int64) string {
	const day = 24 * 60 * 60
	if seconds < 2*day {
		return (time.Duration(seconds) * time.Second).String()
	}
	return strconv.FormatInt(seconds/day, 10) + " days"
}
