package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// platforms are the names that npm gives the systems and processors of a release.
var platforms = []struct{ goos, goarch, os, cpu string }{ //nolint:gochecknoglobals // never changes
	{"linux", "amd64", "linux", "x64"},
	{"linux", "arm64", "linux", "arm64"},
	{"darwin", "amd64", "darwin", "x64"},
	{"darwin", "arm64", "darwin", "arm64"},
	{"windows", "amd64", "win32", "x64"},
	{"windows", "arm64", "win32", "arm64"},
}

// file is a file of a package.
type file struct {
	data []byte
	mode int64
}

// npm writes the packages for npm into a folder, as tarballs: one for each platform with
// the binary of dist, and the package that depends on them. Their versions are that of the
// release. source is the root of the repository.
func npm(folder, source, dist, notices string) error {
	version, err := npmVersion(dist)
	if err != nil {
		return err
	}
	main, err := launcher(source)
	if err != nil {
		return err
	}
	var manifest map[string]any
	if err := json.Unmarshal(main["package.json"].data, &manifest); err != nil {
		return fmt.Errorf("npm/package.json: %w", err)
	}
	name, _ := manifest["name"].(string)
	if name == "" {
		return errors.New("npm/package.json has no name")
	}
	legal := map[string]file{}
	for to, from := range map[string]string{"LICENSE": filepath.Join(source, "LICENSE"), "THIRD_PARTY_LICENSES.txt": notices} {
		if legal[to], err = read(from, 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // its files are published
		return err
	}
	optional := map[string]string{}
	for _, p := range platforms {
		files := maps.Clone(legal)
		binary := name + map[bool]string{true: ".exe"}[p.goos == "windows"]
		if files[binary], err = built(dist, p.goos, p.goarch, binary); err != nil {
			return err
		}
		own := fmt.Sprintf("@%s/%s-%s", name, p.os, p.cpu)
		optional[own] = version
		own, err = pack(folder, files, map[string]any{
			"name": own, "version": version, "description": "The binary of " + name + " for " + p.os + "-" + p.cpu,
			"license": manifest["license"], "repository": manifest["repository"],
			"os": []string{p.os}, "cpu": []string{p.cpu}, "preferUnplugged": true,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", own, err)
		}
	}
	manifest["version"], manifest["optionalDependencies"] = version, optional
	main["LICENSE"] = legal["LICENSE"]
	if _, err := pack(folder, main, manifest); err != nil {
		return err
	}
	return npmWasm(folder, filepath.Join(dist, wasmFolder), version, legal)
}

// npmWasm writes the package with the gateway for WebAssembly, which the command wasm has
// written to from.
func npmWasm(folder, from, version string, legal map[string]file) error {
	files, err := readAll(from)
	if err != nil {
		return err
	}
	var manifest map[string]any
	if err := json.Unmarshal(files["package.json"].data, &manifest); err != nil {
		return fmt.Errorf("%s/package.json: %w", from, err)
	}
	for _, name := range []string{wasmFile, wasmSupport} {
		if len(files[name].data) == 0 {
			return fmt.Errorf("%s has no %s", from, name)
		}
	}
	manifest["version"] = version
	maps.Copy(files, legal)
	_, err = pack(folder, files, manifest)
	return err
}

// npmVersion returns the version of the release in dist. A snapshot has no semantic
// version, which npm requires.
func npmVersion(dist string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dist, "metadata.json")) //nolint:gosec // written by goreleaser
	if err != nil {
		return "", err
	}
	var metadata struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &metadata); err != nil || metadata.Version == "" {
		return "", fmt.Errorf("%s/metadata.json has no version", dist)
	}
	if strings.HasPrefix(metadata.Version, "snapshot-") {
		return "0.0.0-" + metadata.Version, nil
	}
	return metadata.Version, nil
}

// launcher reads the files in the folder npm of the repository.
func launcher(source string) (map[string]file, error) {
	files, err := readAll(filepath.Join(source, "npm"))
	if command, found := files["bin.mjs"]; found {
		files["bin.mjs"] = file{command.data, 0o755}
	}
	return files, err
}

// readAll reads the files in a folder, without those in folders below it.
func readAll(folder string) (map[string]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := map[string]file{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		if files[entry.Name()], err = read(filepath.Join(folder, entry.Name()), 0o644); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func read(path string, mode int64) (file, error) {
	data, err := os.ReadFile(path) //nolint:gosec // a file of the release
	return file{data, mode}, err
}

// built returns the binary that goreleaser built for a platform. The folder's name ends
// with the level of the processor: mockgateway_linux_amd64_v1.
func built(dist, goos, goarch, binary string) (file, error) {
	name, _, _ := strings.Cut(binary, ".")
	found, err := filepath.Glob(filepath.Join(dist, name+"_"+goos+"_"+goarch+"_*", binary))
	if err != nil {
		return file{}, err
	}
	if len(found) != 1 {
		return file{}, fmt.Errorf("%s has %d binaries %s for %s/%s, not 1", dist, len(found), binary, goos, goarch)
	}
	return read(found[0], 0o755)
}

// pack writes a package as npm pack does: everything is below package/, with the same
// time in each release.
func pack(folder string, files map[string]file, manifest map[string]any) (name string, err error) {
	name, _ = manifest["name"].(string)
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return name, err
	}
	files = maps.Clone(files)
	files["package.json"] = file{append(text, '\n'), 0o644}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		err = errors.Join(err, archive.WriteHeader(&tar.Header{
			Name: "package/" + path, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(499162500, 0), Format: tar.FormatUSTAR, // as npm pack does
		}))
		_, writing := archive.Write(f.data)
		err = errors.Join(err, writing)
	}
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return name, err
	}
	base := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	path := filepath.Join(folder, fmt.Sprintf("%s-%s.tgz", base, manifest["version"]))
	return name, os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // it is published
}
