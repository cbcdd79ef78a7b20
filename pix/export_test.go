package pix

// Checksum is the checksum of a code, which the published samples verify.
func Checksum(code string) uint16 { return checksum([]byte(code)) }
