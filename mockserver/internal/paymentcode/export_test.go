package paymentcode

// CRC16 is the checksum of a BR Code.
func CRC16(text string) uint16 { return crc16([]byte(text)) }

// CheckDigit is the check digit of the barcode with the given other digits.
func CheckDigit(others string) byte { return mod11(others) }
