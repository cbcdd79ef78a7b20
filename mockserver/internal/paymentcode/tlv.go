package paymentcode

import (
	"fmt"
	"strconv"
	"strings"
)

// maxTLV is the longest value that the two-digit length of an EMV field can
// announce.
const maxTLV = 99

// appendTLV appends one EMV field: a two-digit id, a two-digit length, the
// value, which is cut where it is too long.
func appendTLV[T string | []byte](b []byte, id string, value T) []byte {
	value = value[:min(len(value), maxTLV)]
	b = append(b, id...)
	b = append(b, byte('0'+len(value)/10), byte('0'+len(value)%10)) //nolint:gosec // at most 99
	return append(b, value...)
}

// parseTLV splits s into its EMV fields. Every field of one level has an id of
// its own: a text that names one twice could be read in two ways.
func parseTLV(s string) (map[string]string, error) {
	fields := make(map[string]string)
	for at := 0; at < len(s); {
		if len(s)-at < 4 {
			return nil, fmt.Errorf("field at %d: cut off", at)
		}
		id, length := s[at:at+2], s[at+2:at+4]
		n, err := strconv.ParseUint(length, 10, 8)
		if err != nil || strings.Trim(id, "0123456789") != "" {
			return nil, fmt.Errorf("field at %d: id and length must be digits", at)
		}
		start, end := at+4, at+4+int(n)
		if end > len(s) {
			return nil, fmt.Errorf("field %s at %d: %d characters announced, %d left", id, at, n, len(s)-start)
		}
		if _, twice := fields[id]; twice {
			return nil, fmt.Errorf("field %s at %d: named twice", id, at)
		}
		fields[id] = s[start:end]
		at = end
	}
	return fields, nil
}
