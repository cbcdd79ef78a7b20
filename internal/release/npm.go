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
var platforms = []platform{ //nolint:gochecknoglobals // never changes
	{"linux", "amd64", "linux", "x64"},
	{"linux", "arm64", "linux", "arm64"},
	{"darwin", "amd64", "darwin", "x64"},
	{"darwin", "arm64", "darwin", "arm64"},
	{"windows", "amd64", "win32", "x64"},
	{"windows", "arm64", "win32", "arm64"},
}

type platform struct{ goos, goarch, os, cpu string }

// name returns the name of the package with the platform's binary.
func (p platform) name(of string) string { return fmt.Sprintf("@%s/%s-%s", of, p.os, p.cpu) }

// file is a file of a package.
type file struct {
	data []byte
	mode int64
}

// npm writes the package for npm with the binary of a platform, such as linux/amd64, into a
// folder, and the package that depends on those of all platforms. goreleaser calls it for
// each binary, so that its checksums list the packages. source is the root of the
// repository. Of js/wasm, the package has the folder that the command wasm has written.
func npm(folder, source, release, notices, target, binary string) error {
	if target == "js/wasm" {
		return npmWasm(folder, source, npmVersion(release), notices, binary)
	}
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.goos+"/"+p.goarch == target })
	if i < 0 {
		return fmt.Errorf("npm has no name for %s", target)
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
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // its files are published
		return err
	}
	p, version, files := platforms[i], npmVersion(release), map[string]file{}
	program := name + map[bool]string{true: ".exe"}[p.goos == "windows"]
	for to, from := range map[string]string{
		"LICENSE": filepath.Join(source, "LICENSE"), "THIRD_PARTY_LICENSES.txt": notices, program: binary,
	} {
		mode := int64(0o644)
		if to == program {
			mode = 0o755
		}
		if files[to], err = read(from, mode); err != nil {
			return err
		}
	}
	own := p.name(name)
	if err := pack(folder, files, map[string]any{
		"name": own, "version": version, "description": "The binary of " + name + " for " + p.os + "-" + p.cpu,
		"license": manifest["license"], "repository": manifest["repository"],
		"os": []string{p.os}, "cpu": []string{p.cpu}, "preferUnplugged": true,
	}); err != nil {
		return fmt.Errorf("%s: %w", own, err)
	}
	optional := map[string]string{}
	for _, p := range platforms {
		optional[p.name(name)] = version
	}
	manifest["version"], manifest["optionalDependencies"] = version, optional
	main["LICENSE"] = files["LICENSE"]
	return pack(folder, main, manifest)
}

// npmWasm writes the package with the gateway for WebAssembly. goreleaser calls it after
// each binary, and the first call writes it.
func npmWasm(folder, source, version, notices, built string) error {
	files, err := readAll(built)
	if err != nil {
		return err
	}
	var manifest map[string]any
	if err := json.Unmarshal(files["package.json"].data, &manifest); err != nil {
		return fmt.Errorf("%s/package.json: %w", built, err)
	}
	for _, name := range []string{wasmFile, wasmSupport} {
		if len(files[name].data) == 0 {
			return fmt.Errorf("%s has no %s", built, name)
		}
	}
	manifest["version"] = version
	if _, err := os.Stat(tarball(folder, manifest)); err == nil {
		return nil
	}
	for to, from := range map[string]string{"LICENSE": filepath.Join(source, "LICENSE"), "THIRD_PARTY_LICENSES.txt": notices} {
		if files[to], err = read(from, 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // its files are published
		return err
	}
	return pack(folder, files, manifest)
}

// npmVersion returns the version of the packages of a release. A snapshot has no semantic
// version, which npm requires.
func npmVersion(release string) string {
	if strings.HasPrefix(release, "snapshot-") {
		return "0.0.0-" + release
	}
	return release
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

// pack writes a package as npm pack does: everything is below package/, with the same
// time in each release.
func pack(folder string, files map[string]file, manifest map[string]any) error {
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
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
		return err
	}
	return os.WriteFile(tarball(folder, manifest), out.Bytes(), 0o644) //nolint:gosec // it is published
}

// tarball returns the path of a package, which is named as npm pack names it.
func tarball(folder string, manifest map[string]any) string {
	name, _ := manifest["name"].(string)
	base := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	return filepath.Join(folder, fmt.Sprintf("%s-%s.tgz", base, manifest["version"]))
}
