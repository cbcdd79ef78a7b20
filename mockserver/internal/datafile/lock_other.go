//go:build !unix

package datafile

import "os"

// lockFile opens the lock's file only: this system has no lock that ends with
// the process.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user's own choice of file
}
