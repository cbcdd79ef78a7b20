package spec

import "fmt"

// maxAccountName is the longest name of an account in bytes. The name is part of
// database keys and of queue names.
const maxAccountName = 64

// CheckAccountName checks the name that a merchant gives an account.
func CheckAccountName(name string) error {
	if name == "" || len(name) > maxAccountName {
		return fmt.Errorf("the name has %d bytes: it must have 1 to %d", len(name), maxAccountName)
	}
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Errorf("the name contains %q: only letters a to z and A to Z, digits, '-', '_' and '.' are allowed", c)
		}
	}
	return nil
}
