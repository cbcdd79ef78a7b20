package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// notices returns the licenses of all modules that the commands link on any
// platform, each with the URL of its source. They must be distributed with the
// binaries. The gateway for WebAssembly links no other module than mockgateway.
func notices(ctx context.Context, commands []string) ([]byte, error) {
	root, err := goCommand(ctx, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules, err := linked(ctx, commands)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("The commands in this archive contain the modules below. The URL above each license leads to the module's source.\n")
	if err := notice(&out, "the Go standard library, and wasm_exec.js of the package for WebAssembly, https://go.dev/dl/", strings.TrimSpace(root)); err != nil {
		return nil, err
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if err := notice(&out, fmt.Sprintf("%s, https://pkg.go.dev/%[1]s", module), modules[module]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// linked returns the folders of the modules that the commands link, by
// path@version.
func linked(ctx context.Context, commands []string) (map[string]string, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`
	folders := map[string]string{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			env := []string{"GOOS=" + goos, "GOARCH=" + arch, "CGO_ENABLED=0"}
			output, err := goCommand(ctx, env, append([]string{"list", "-deps", "-f", format}, commands...)...)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(output) {
				module, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
				folders[module] = folder
			}
		}
	}
	return folders, nil
}

// notice appends the license files of a module's folder.
func notice(out *bytes.Buffer, title, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	isLicense := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)(\.\w+)?$`)
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !isLicense.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // a file of a module
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), title, bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return errors.New("found no license file for " + title)
	}
	return nil
}

func goCommand(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // fixed arguments
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, errs.Bytes())
	}
	return string(out), nil
}
