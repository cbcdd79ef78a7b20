// Command release writes the files that goreleaser adds to a release: the
// licenses of the linked modules and an SBOM for each command.
// .goreleaser.yaml runs it.
//
//	go run ./internal/release notices FILE PACKAGE...
//	go run ./internal/release sbom FILE BINARY
//
// The output depends only on the commit and the Go version.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes the file that args name; see the package comment.
func run(ctx context.Context, args []string) error {
	if len(args) < 3 {
		return errors.New("usage: release notices FILE PACKAGE... | release sbom FILE BINARY")
	}
	var data []byte
	var err error
	switch kind, inputs := args[0], args[2:]; {
	case kind == "notices":
		data, err = notices(ctx, inputs)
	case kind == "sbom" && len(inputs) == 1:
		data, err = sbom(inputs[0])
	default:
		err = fmt.Errorf("unknown command %q, or too many arguments", kind)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], data, 0o644) //nolint:gosec // the file is published
}
