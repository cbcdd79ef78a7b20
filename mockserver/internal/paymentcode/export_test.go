package paymentcode

import "fmt"

// WithCRC ends a text in its right check sum, so that tests reach what is
// looked at after it.
func WithCRC(s string) string {
	s += crcHeader
	return s + fmt.Sprintf("%04X", crc16([]byte(s)))
}
