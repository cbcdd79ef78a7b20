package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

const (
	wasmFile    = "mockgateway.wasm"
	wasmSupport = "wasm_exec.js" // runs a program of the same release of Go, and only that
	wasmCommand = "./mockserver/cmd/mockgateway-wasm"
)

// wasm writes the gateway for WebAssembly into a folder, with everything that a page or
// Node.js needs to run it: the files of npm/wasm and Go's support code.
func wasm(ctx context.Context, folder, source string) error {
	files, err := readAll(filepath.Join(source, "npm", "wasm"))
	if err != nil {
		return err
	}
	root, err := goCommand(ctx, nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	if files[wasmSupport], err = read(filepath.Join(strings.TrimSpace(root), "lib", "wasm", wasmSupport), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // its files are published
		return err
	}
	built, err := filepath.Abs(filepath.Join(folder, wasmFile)) // not below source
	if err != nil {
		return err
	}
	// The flags of .goreleaser.yaml.
	if _, err := goCommand(ctx, []string{"GOOS=js", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0"},
		"build", "-C", source, "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", built, wasmCommand); err != nil {
		return err
	}
	for name, f := range files {
		if err := os.WriteFile(filepath.Join(folder, name), f.data, 0o644); err != nil { //nolint:gosec // it is published
			return err
		}
	}
	return nil
}
