package spec

import "strings"

// NormalPixKey returns the form in which the central bank's directory stores a
// Pix key, and whether value is a valid key of that type:
//
//	CPF    11 digits, or 000.000.000-00; valid check digits
//	CNPJ   14 digits or capital letters, or 00.000.000/0000-00; valid check digits
//	EMAIL  an e-mail address
//	PHONE  + and 8 to 15 digits, or a Brazilian number of 10 or 11 digits with or without 55 before it
//	EVP    a UUID
//
// Values with the same normal form are the same key. No value is valid for an
// unknown type.
func NormalPixKey(keyType, value string) (normal string, ok bool) {
	switch keyType {
	case "CPF":
		normal = unmask(value, "000.000.000-00")
		return normal, isCPF(normal)
	case "CNPJ":
		normal = unmask(value, "00.000.000/0000-00")
		return normal, isCNPJ(normal)
	case "EMAIL":
		return strings.ToLower(value), isEmail(value)
	case "PHONE":
		return normalPhone(value)
	case "EVP":
		return strings.ToLower(value), IsUUID(value)
	default:
		return value, false
	}
}

// pixKeyRequirement returns the message for an invalid key of the type, or ""
// for an unknown type.
func pixKeyRequirement(keyType string) string {
	switch keyType {
	case "CPF":
		return "must be a CPF: 11 digits with valid check digits"
	case "CNPJ":
		return "must be a CNPJ: 14 digits or capital letters with valid check digits"
	case "EMAIL":
		return "must be an e-mail address"
	case "PHONE":
		return "must be a phone number such as +5511987654321, or 10 or 11 digits in Brazil"
	case "EVP":
		return "must be a random key: a UUID"
	default:
		return ""
	}
}

// unmask removes the punctuation of mask from s if s has all of it.
func unmask(s, mask string) string {
	if len(s) != len(mask) {
		return s
	}
	plain := make([]byte, 0, len(s))
	for i := range len(s) {
		switch {
		case mask[i] == '0':
			plain = append(plain, s[i])
		case mask[i] != s[i]:
			return s
		}
	}
	return string(plain)
}

// isCPF verifies the two check digits, each modulo 11 over all digits before
// it. A CPF that repeats one digit passes that check but is never issued.
func isCPF(s string) bool {
	return len(s) == 11 && digits(s) && strings.Trim(s, s[:1]) != "" && checkDigits(s, 11)
}

// isCNPJ works like isCPF, with weights that wrap around after 9. Numbers
// issued since July 2026 may have capital letters before the check digits.
func isCNPJ(s string) bool {
	return len(s) == 14 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" &&
		strings.Trim(s, s[:1]) != "" && checkDigits(s, 9)
}

// checkDigits verifies the last two characters of s. Weights run from the
// right, from 2 to maxWeight, and wrap around; the value of a letter is its
// distance from '0' in ASCII.
func checkDigits(s string, maxWeight int) bool {
	for _, end := range [...]int{len(s) - 2, len(s) - 1} {
		sum, weight := 0, 2
		for i := end - 1; i >= 0; i-- {
			sum += int(s[i]-'0') * weight
			if weight++; weight > maxWeight {
				weight = 2
			}
		}
		check := 11 - sum%11
		if check > 9 {
			check = 0
		}
		if int(s[end]-'0') != check {
			return false
		}
	}
	return true
}

// normalPhone converts a phone number to E.164.
func normalPhone(s string) (string, bool) {
	international, plus := strings.CutPrefix(s, "+")
	if plus && !strings.HasPrefix(international, "55") {
		return s, len(international) >= 8 && len(international) <= 15 && digits(international) && international[0] != '0'
	}
	national := international
	if plus || len(national) > 11 {
		national = strings.TrimPrefix(national, "55")
	}
	if !isBrazilianPhone(national) {
		return s, false
	}
	return "+55" + national, true
}

// isBrazilianPhone checks for a two-digit area code without zeros, followed by
// 8 digits of a landline or 9 digits of a mobile, which begins with 9.
func isBrazilianPhone(s string) bool {
	if !digits(s) || len(s) != 10 && len(s) != 11 {
		return false
	}
	return s[0] != '0' && s[1] != '0' && s[2] != '0' && (len(s) == 10 || s[2] == '9')
}
