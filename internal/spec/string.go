package spec

import (
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// String checks that a member is a string.
func (o *Object) String(name string, p Presence) StringRule {
	return StringRule{o.take(name, p, '"', "a string")}
}

// StringRule is a string being checked. Lengths count characters, not bytes.
type StringRule struct{ member }

// value returns the string, or "" if the member is not one.
func (r StringRule) value() string {
	if !r.ok() {
		return ""
	}
	return r.o.c.doc.Text(r.at)
}

// Len checks the minimum and maximum number of characters.
func (r StringRule) Len(lo, hi int) StringRule {
	r.shape().length(lo, hi)
	if !r.ok() {
		return r
	}
	switch n := utf8.RuneCountInString(r.value()); {
	case n < lo:
		r.o.Fail(r.name, CodeTooSmall, "must have at least %s", characters(lo))
	case n > hi:
		r.o.Fail(r.name, CodeTooBig, "must have at most %s", characters(hi))
	}
	return r
}

// MinLen checks the minimum number of characters.
func (r StringRule) MinLen(lo int) StringRule { return r.Len(lo, math.MaxInt) }

// MaxLen checks the maximum number of characters.
func (r StringRule) MaxLen(hi int) StringRule { return r.Len(0, hi) }

func characters(n int) string { return count(n, "character") }

func elements(n int) string { return count(n, "element") }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Match checks the string with valid. If valid returns false, f has the message of the
// violation.
func (r StringRule) Match(valid func(string) bool, f Format) StringRule {
	r.shape().format(f)
	if r.ok() && !valid(r.value()) {
		r.o.Fail(r.name, CodeInvalid, "%s", f.Must)
	}
	return r
}

// Email checks for an e-mail address.
func (r StringRule) Email() StringRule {
	return r.Match(isEmail, Format{Must: "must be an e-mail address", Names: "email"})
}

// IP checks for an IPv4 or IPv6 address.
func (r StringRule) IP() StringRule {
	return r.Match(isIP, Format{Must: "must be an IPv4 or IPv6 address", Names: "ipv4 ipv6"})
}

// WebURL checks for an absolute http or https URL.
func (r StringRule) WebURL() StringRule {
	return r.Match(func(s string) bool { _, ok := webURL(s); return ok },
		Format{Must: "must be an http or https URL", Names: "uri", Pattern: "^[Hh][Tt][Tt][Pp][Ss]?://"})
}

// HTTPS checks for an absolute https URL. With [Variant.LoopbackHTTP], plain
// http to a loopback host is accepted too, with [Variant.LocalHTTP] to any local host.
func (r StringRule) HTTPS() StringRule {
	return r.Match(func(s string) bool {
		u, ok := webURL(s)
		v := r.o.Variant()
		return ok && (u.Scheme == "https" || v.LoopbackHTTP && IsLoopback(u.Hostname()) || v.LocalHTTP && IsLocal(u.Hostname()))
	}, Format{Must: "must be an https URL", Names: "uri", Pattern: "^[Hh][Tt][Tt][Pp][Ss]://"})
}

// Time checks for an RFC 3339 timestamp with a zone.
func (r StringRule) Time() StringRule {
	return r.Match(func(s string) bool {
		t, err := ParseTime(s)
		// In UTC, a time in the last hours of 9999 may be in a year that RFC
		// 3339 can't express.
		return err == nil && t.UTC().Year() >= 0 && t.UTC().Year() <= 9999
	}, Format{Must: "must be a timestamp with a zone, such as 2027-01-04T12:00:00Z", Names: "date-time"})
}

// Date checks for an RFC 3339 timestamp with a zone or a date.
func (r StringRule) Date() {
	r.Match(isDate, Format{Must: "must be a date or a timestamp with a zone", Names: "date-time date"})
}

// Future checks that a timestamp is after the variant's Now.
func (r StringRule) Future() {
	now := r.o.Variant().Now
	if !r.ok() || now.IsZero() {
		return
	}
	if t, err := ParseTime(r.value()); err == nil && !t.After(now) {
		r.o.Fail(r.name, CodeInvalid, "%s", MustBeAfter(now))
	}
}

// MustBeAfter returns the message for a timestamp that is not in the future.
// It includes the gateway's time, because a test may have advanced the clock
// by months.
func MustBeAfter(now time.Time) string {
	return "must be after the gateway's current time, " + now.UTC().Format(time.RFC3339)
}

// ParseTime parses an RFC 3339 timestamp; T and Z may be lower case.
func ParseTime(s string) (time.Time, error) {
	return time.Parse(time.RFC3339, strings.ToUpper(s))
}

// IsLoopback reports whether host is localhost or a loopback address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// IsLocal reports whether host belongs to this machine or to a private network, such as
// one of containers: a loopback or private address, a name without a dot, or a name that
// is reserved for such networks.
func IsLocal(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback() || ip.Unmap().IsPrivate()
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	for _, reserved := range [...]string{"localhost", "internal", "test", "local", "home.arpa"} {
		if name == reserved || strings.HasSuffix(name, "."+reserved) {
			return true
		}
	}
	return name != "" && !strings.ContainsAny(name, ".:%") && !strings.ContainsAny(name[:1], "0123456789") // not an IPv4 address as one number
}

// IsPort reports whether s is a TCP port from 1 to 65535.
func IsPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func webURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Contains(s, " ") || u.Port() != "" && !IsPort(u.Port()) {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http"
}

func isEmail(s string) bool {
	if isPlainEmail(s) {
		return true
	}
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

// isPlainEmail recognizes common addresses, which have no comments, quotes or
// unusual characters, without allocating.
func isPlainEmail(s string) bool {
	local, domain, found := strings.Cut(s, "@")
	return found && isDotted(local) && isDotted(domain)
}

// isDotted reports whether s consists of words of letters, digits, "-", "_"
// and "+", joined by single dots.
func isDotted(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" {
			return false
		}
		for i := range len(word) {
			if c := word[i]; !isWord(c) && c != '-' && c != '+' {
				return false
			}
		}
	}
	return true
}

func isIP(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Zone() == ""
}

// alphanumeric reports whether s consists of ASCII letters and digits.
func alphanumeric(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) || s[i] == '_' {
			return false
		}
	}
	return true
}

func isDate(s string) bool {
	if _, err := ParseTime(s); err == nil {
		return true
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// IsUUID reports whether s is a UUID in the form of the gateway's ids: 36
// characters, with hyphens.
func IsUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
