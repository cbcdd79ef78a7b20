//go:build !unix

package datafile

import "os"

// lockFile opens the lock's file only, which keeps no second process away: what
// this system has for a lock that ends with its process is not used here.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user's own choice of file
}
