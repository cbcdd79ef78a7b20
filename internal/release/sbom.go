package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
)

// component is a component of a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func library(module, version string) component {
	purl := purl(module, version)
	return component{Type: "library", Ref: purl, Name: module, Version: version, PURL: purl}
}

// purl returns the package URL of a module. A "+" in the version must be
// escaped.
func purl(module, version string) string {
	return "pkg:golang/" + module + "@" + url.QueryEscape(version)
}

// document is a CycloneDX document. It has no serial number, so that identical
// binaries have identical documents.
type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

// sbom returns a CycloneDX document that lists the modules linked into a binary.
// The Go toolchain records them in the binary, so the list is exact.
func sbom(binary string) ([]byte, error) {
	data, err := os.ReadFile(binary) //nolint:gosec // a binary that was just built
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	doc, err := describe(info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	doc.Metadata.Component.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(data))}}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// describe returns the document for a binary, without the binary's hash.
func describe(info *buildinfo.BuildInfo) (*document, error) {
	doc := &document{Format: "CycloneDX", Spec: "1.6", Version: 1}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			doc.Metadata.Timestamp = s.Value
		}
	}
	if doc.Metadata.Timestamp == "" {
		return nil, fmt.Errorf("%s was not built in a git checkout: releases must be built from a commit", info.Path)
	}
	command := library(info.Main.Path, info.Main.Version)
	command.Type, command.Name = "application", path.Base(info.Path)
	if folder, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		command.PURL += "#" + folder
		command.Ref = command.PURL
	}
	doc.Metadata.Component = command
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release may link only published modules", dep.Path)
		}
		doc.Components = append(doc.Components, library(dep.Path, dep.Version))
	}
	doc.Components = append(doc.Components, library("stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	return doc, nil
}
