//go:build !unix

package datafile

import "os"

// lockFile opens the lock file without locking it, so it doesn't exclude a second
// process: locks that end with the process are implemented for Unix only.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the user chose the file
}
