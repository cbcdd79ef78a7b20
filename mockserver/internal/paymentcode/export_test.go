package paymentcode

// CheckDigit is the check digit of the barcode with the given other digits.
func CheckDigit(others string) byte { return mod11(others) }
