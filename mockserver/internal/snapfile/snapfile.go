// Package snapfile defines the file format of a snapshot: a JSON object with the
// name and version of the format and a checksum.
package snapfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/internal/jsonread"
)

// Format and Version identify the format. The version changes when older files can
// no longer be read.
const (
	Format  = "mockgateway-snapshot"
	Version = 3
)

// ErrFile means that the bytes can't be read as a snapshot.
var ErrFile = errors.New("not a snapshot of the mock gateway")

// File is a saved snapshot.
type File struct {
	Format      string         `json:"format"`      // "mockgateway-snapshot"
	Version     int            `json:"version"`     // of the format
	Dialect     string         `json:"dialect"`     // of the server
	Environment string         `json:"environment"` // of the server
	Checksum    string         `json:"sha256"`      // of the state without white space, in hex
	State       jsontext.Value `json:"state"`       // in the store's format
}

// Seal returns the bytes of a file that contains state.
func Seal(f File, state any) ([]byte, error) {
	b, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	f.Format, f.Version, f.State = Format, Version, b
	f.Checksum = checksum(b)
	return json.Marshal(f)
}

// Open reads a file and verifies its checksum. Its errors match [ErrFile].
func Open(b []byte) (File, error) {
	var f File
	b = jsonread.WithoutMark(b)
	var broken *json.SyntaxError
	switch err := json.Unmarshal(b, &f); {
	case len(bytes.TrimSpace(b)) == 0:
		return f, fmt.Errorf("%w: it is empty", ErrFile)
	case errors.As(err, &broken) && broken.Error() == "unexpected end of JSON input":
		return f, fmt.Errorf("%w: it is truncated after %d bytes", ErrFile, len(b))
	case errors.As(err, &broken):
		return f, fmt.Errorf("%w: it is not JSON: %w at byte %d", ErrFile, err, broken.Offset)
	case f.Format != Format:
		return f, fmt.Errorf(`%w: it has no "format":%q`, ErrFile, Format)
	case f.Version != Version:
		return f, fmt.Errorf("%w: it has version %d, and this release reads version %d", ErrFile, f.Version, Version)
	case err != nil:
		return f, fmt.Errorf("%w: %w", ErrFile, err)
	}
	var compact bytes.Buffer // the file may have been reformatted
	if err := json.Compact(&compact, f.State); err != nil || checksum(compact.Bytes()) != f.Checksum {
		return f, fmt.Errorf("%w: it is damaged or was changed: its checksum does not match", ErrFile)
	}
	return f, nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
