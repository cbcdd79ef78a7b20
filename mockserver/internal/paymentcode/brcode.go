// Package paymentcode generates Pix copy-paste codes and boletos. They have the
// real format and valid check digits, so a merchant's own checks pass, but they
// can't be paid: the Pix host is under .invalid and the boleto's bank is 999.
package paymentcode

import "strconv"

// host is the server from which the payer's bank would fetch a charge. It does
// not exist.
const host = "pix.mock.invalid"

// ChargeCode returns the Pix copy-paste code (a BR Code) of the charge with the
// given id.
func ChargeCode(id string, cents int64) string { return brCode(host+"/v2/"+id, cents) }

// ConsentCode returns the code with which a payer authorizes the Pix Automatico
// (a recurring debit) with the given id.
func ConsentCode(id string, cents int64) string { return brCode(host+"/rec/"+id, cents) }

// brCode returns the EMV fields that the central bank's BR Code manual requires,
// and their checksum. If cents is 0, the code has no amount.
func brCode(url string, cents int64) string {
	var buf [99]byte // for the longest value that a field can have

	b := append(make([]byte, 0, 256), "000201"+"010212"...) // version 01, can be paid once
	b = appendTLV(b, "26", appendTLV(append(buf[:0], "0014br.gov.bcb.pix"...), "25", url))
	b = append(b, "52040000"+"5303986"...) // no merchant category, in reais
	if cents > 0 {
		b = appendTLV(b, "54", appendReais(buf[:0], cents))
	}
	b = append(b, "5802BR"+"5912GATEWAY MOCK"+"6009SAO PAULO"+"62070503***"+"6304"...)
	sum := crc16(b)
	return string(append(b, hex(sum>>12), hex(sum>>8), hex(sum>>4), hex(sum)))
}

// appendTLV appends one EMV field: a two-digit id, a two-digit length and the
// value, which has at most 99 characters.
func appendTLV[T string | []byte](b []byte, id string, value T) []byte {
	b = append(b, id...)
	b = append(b, byte('0'+len(value)/10), byte('0'+len(value)%10)) //nolint:gosec // at most 99
	return append(b, value...)
}

// hex returns the last four bits of v as an uppercase hexadecimal digit.
func hex(v uint16) byte { return "0123456789ABCDEF"[v&0xF] }

// appendReais appends an amount in cents as reais: 12.34.
func appendReais(b []byte, cents int64) []byte {
	b = append(strconv.AppendInt(b, cents/100, 10), '.')
	return append(b, byte('0'+cents%100/10), byte('0'+cents%10))
}

// crc16 is CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF, no
// reflection.
func crc16(b []byte) uint16 {
	sum := uint16(0xFFFF)
	for _, c := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>8)^c]
	}
	return sum
}

// crcTable holds the CRC of every byte. It is precomputed because every response
// with a charge has a code, and a page of a list has up to a hundred.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum >> 15
			sum = sum<<1 ^ carry*0x1021
		}
		table[i] = sum
	}
	return table
}()
