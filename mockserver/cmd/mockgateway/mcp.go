package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// runMCP is the command mcp: like git, it runs another binary, so that this one doesn't
// link it.
func runMCP(ctx context.Context, p environment, args []string) int {
	name, err := mcpBinary()
	if err != nil {
		log{}.note(p.errs, noteError, "gateway-mcp is neither in the folder of mockgateway nor in PATH: install it in one of them")
		return exitRefused
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the user's own binary, with the user's own arguments
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.environ, standardInput(), p.out, p.errs
	if runtime.GOOS != "windows" { // which can only kill
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	}
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	log{}.note(p.errs, noteError, "gateway-mcp: "+err.Error())
	return exitRefused
}

// mcpBinary finds gateway-mcp.
func mcpBinary() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "gateway-mcp")); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("gateway-mcp")
}
