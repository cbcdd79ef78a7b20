package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

type module = debug.Module

// component is a component of a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func newComponent(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{kind, purl, path, version, purl}
}

// sbom returns what is linked into the commands of an archive as a CycloneDX document.
// The toolchain wrote it into the binaries, so it lists neither too much nor too little.
func sbom(name string, info *buildinfo.BuildInfo, made time.Time) ([]byte, error) {
	var document struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Timestamp string    `json:"timestamp"`
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	document.Format, document.Spec, document.Version = "CycloneDX", "1.6", 1
	document.Metadata.Timestamp = made.UTC().Format(time.RFC3339)
	document.Metadata.Component = newComponent("application", info.Main.Path, info.Main.Version)
	document.Metadata.Component.Name = name
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release has published modules only", dep.Path)
		}
		document.Components = append(document.Components, newComponent("library", dep.Path, dep.Version))
	}
	document.Components = append(document.Components, newComponent("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	data, err := json.MarshalIndent(document, "", "  ")
	return append(data, '\n'), err
}

// notices returns the licences of everything that is linked, which whoever passes a
// binary on must pass on too, with the place of each source.
func notices(ctx context.Context, dir string, info *buildinfo.BuildInfo) ([]byte, error) {
	root, err := goCommand(ctx, dir, platform{}, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("The commands of this archive link the modules below. Each can be obtained as source at the address above its licence.\n")
	if err := notice(&out, "the Go standard library, https://go.dev/dl/", strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	list := []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, dep := range info.Deps {
		list = append(list, dep.Path)
	}
	listed, err := goCommand(ctx, dir, platform{}, list...)
	if err != nil {
		return nil, err
	}
	folders := strings.Split(strings.TrimSpace(string(listed)), "\n")
	if len(folders) != len(info.Deps) {
		return nil, errors.New("go list doesn't know every module that is linked")
	}
	for i, dep := range info.Deps {
		title := fmt.Sprintf("%s %s, https://pkg.go.dev/%s@%s", dep.Path, dep.Version, dep.Path, dep.Version)
		if err := notice(&out, title, folders[i]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func notice(out *bytes.Buffer, title, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	isLicence := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)(\.\w+)?$`)
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !isLicence.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // of a module
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), title, bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return errors.New("no licence found of " + title)
	}
	return nil
}
