// Command release writes what goreleaser does not: the licenses of the linked modules,
// an SBOM for each command, the gateway for WebAssembly and the packages for npm.
// .goreleaser.yaml and .ci/release run it.
//
//	go run ./internal/release notices FILE PACKAGE...
//	go run ./internal/release sbom FILE BINARY
//	go run ./internal/release wasm FOLDER
//	go run ./internal/release npm FOLDER VERSION NOTICES GOOS/GOARCH BINARY
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

// run writes the file or the folder that args name; see the package comment.
func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "wasm" {
		return wasm(ctx, args[1], ".")
	}
	if len(args) < 3 {
		return errors.New("usage: release notices FILE PACKAGE... | release sbom FILE BINARY | release wasm FOLDER | release npm FOLDER VERSION NOTICES GOOS/GOARCH BINARY")
	}
	var data []byte
	var err error
	switch kind, inputs := args[0], args[2:]; {
	case kind == "notices":
		data, err = notices(ctx, inputs)
	case kind == "npm" && len(inputs) == 4:
		return npm(args[1], ".", inputs[0], inputs[1], inputs[2], inputs[3])
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
