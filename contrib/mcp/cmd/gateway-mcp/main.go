// Command gateway-mcp is a Model Context Protocol server for agents. It has one plane per
// process: "test" works on a mock gateway and holds no real key, "money" works on a
// gateway and moves money only with a person's approval.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A command is a subcommand of gateway-mcp.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

func commands() []command { return append(testCommands(), moneyCommands()...) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a subcommand and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:], stdin, stdout, stderr)
			}
		}
	}
	_, _ = fmt.Fprintln(stderr, "usage: gateway-mcp COMMAND [flags]")
	for _, c := range commands() {
		_, _ = fmt.Fprintf(stderr, "  %-10s %s\n", c.name, c.summary)
	}
	return 2
}
