//go:build !unix

package intent

import (
	"errors"
	"os"
)

// lock fails: without a lock, two processes could send the same refund.
func lock(*os.File) (unlock func(), err error) {
	return nil, errors.New("intent: journal: this system has no flock: run the server on Linux, macOS or in WSL")
}
