// Command mockgateway is a complete in-memory payment gateway for any language.
//
//	go run ./mockserver/cmd/mockgateway
//
// It prints the base URL and an API key; nothing else is needed. Its commands, such as
// mockgateway pay, control a gateway that runs. See docs/mockgateway.md.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is main with its environment as arguments. It returns the exit code.
func run(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	p := environment{environ, out, errs}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runServe(ctx, p, args)
	}
	c, ok := named(args[0])
	if !ok {
		return unknownCommand(p, args[0])
	}
	return c.do(ctx, p, args[1:])
}
