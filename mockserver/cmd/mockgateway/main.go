// Command mockgateway is a complete in-memory payment gateway for any language.
//
//	go run ./mockserver/cmd/mockgateway
//
// It prints the base URL and an API key; nothing else is needed. See
// docs/mockgateway.md.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
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
	if len(args) > 0 && args[0] == "exam" {
		return examine(ctx, args[1:], environ, out, errs)
	}
	cfg, code, done := parse(args, environ, out, errs)
	if done {
		return code
	}
	do := serve
	if cfg.health {
		do = health
	}
	if err := do(ctx, cfg, out, errs); err != nil {
		cfg.log.note(errs, noteError, err.Error())
		return 1
	}
	return 0
}
