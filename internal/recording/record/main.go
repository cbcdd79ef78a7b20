// Command record runs a Go program and writes its output as a picture of a
// terminal.
//
//	go run ./internal/recording/record docs/quickstart.svg ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/gateway-go/gateway/internal/recording"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: record FILE PACKAGE, got %d arguments", len(args))
	}
	cmd := exec.CommandContext(ctx, "go", "run", args[1]) //nolint:gosec // runs the package that the developer names
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go run %s: %w", args[1], err)
	}
	return os.WriteFile(args[0], recording.SVG("go run "+args[1], string(output)), 0o644) //nolint:gosec // the picture is published
}
