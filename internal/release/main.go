// Command release builds what a release publishes: for each platform an archive with
// the commands and an SBOM, and the checksums of all.
//
//	go run ./internal/release -out dist
//
// The bytes depend on the commit and the Go version alone. It needs Go and git.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// commands are what a release holds.
func commands() []string { return []string{"./mockserver/cmd/mockgateway", "./cmd/gatewayprobe"} }

// documents are the files of the repository that go into every archive.
func documents() []string {
	return []string{"LICENSE", "CHANGELOG.md", "docs/mockgateway.md", "docs/probe.md", "docs/assumptions.md", "docs/shop.seed.json"}
}

type platform struct{ os, arch string }

func platforms() (all []platform) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, platform{system, arch})
		}
	}
	return all
}

func main() {
	out := flag.String("out", "dist", "`folder` that gets the files; it must be empty or missing")
	flag.Parse()
	if err := release(context.Background(), ".", *out, platforms()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds the commit that is checked out in dir.
func release(ctx context.Context, dir, out string, platforms []platform) error {
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // what is published
		return err
	}
	var sums []string
	for _, p := range platforms {
		files, err := pack(ctx, dir, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o644); err != nil { //nolint:gosec // what is published
				return err
			}
			sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(f.data), f.name))
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return cmp.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(out, "checksums.txt"), []byte(strings.Join(sums, "")), 0o644) //nolint:gosec // what is published
}

// file is a file of a release, or of an archive.
type file struct {
	name string
	data []byte
	exec bool
}

// pack returns the archive and the SBOM of a platform.
func pack(ctx context.Context, dir string, p platform) ([]file, error) {
	files, info, err := compile(ctx, dir, p)
	if err != nil {
		return nil, err
	}
	made, err := commitTime(info)
	if err != nil {
		return nil, err
	}
	notices, err := notices(ctx, dir, info)
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: "THIRD_PARTY_LICENSES.txt", data: notices})
	for _, name := range documents() {
		data, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // of the repository
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, data: data})
	}
	name := fmt.Sprintf("gateway_%s_%s_%s", info.Main.Version, p.os, p.arch)
	archive, suffix := tarball, ".tar.gz"
	if p.os == "windows" {
		archive, suffix = zipped, ".zip"
	}
	packed, err := archive(name, files, made)
	if err != nil {
		return nil, err
	}
	bom, err := sbom(name, info, made)
	return []file{{name: name + suffix, data: packed}, {name: name + ".cdx.json", data: bom}}, err
}

// compile returns the commands, and what the toolchain says of them: the version, the
// commit and every module that is linked.
func compile(ctx context.Context, dir string, p platform) (files []file, info *buildinfo.BuildInfo, err error) {
	bin, err := os.MkdirTemp("", "gateway-release")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	args := append([]string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}, commands()...)
	if _, err := goCommand(ctx, dir, p, args...); err != nil {
		return nil, nil, err
	}
	for _, command := range commands() {
		name := filepath.Base(command)
		if p.os == "windows" {
			name += ".exe"
		}
		path := filepath.Join(bin, name)
		data, err := os.ReadFile(path) //nolint:gosec // just built
		if err != nil {
			return nil, nil, err
		}
		read, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file{name: name, data: data, exec: true})
		info = merge(info, read)
	}
	return files, info, nil
}

// merge adds the modules of another command.
func merge(a, b *buildinfo.BuildInfo) *buildinfo.BuildInfo {
	if a == nil {
		return b
	}
	for _, dep := range b.Deps {
		if !slices.ContainsFunc(a.Deps, func(known *module) bool { return known.Path == dep.Path }) {
			a.Deps = append(a.Deps, dep)
		}
	}
	slices.SortFunc(a.Deps, func(x, y *module) int { return cmp.Compare(x.Path, y.Path) })
	return a
}

// goCommand runs the go command for a platform. Whatever else can change the bytes is
// set: a maintainer's GOFLAGS or GOAMD64 must not.
func goCommand(ctx context.Context, dir string, p platform, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, errs.Bytes())
	}
	return out, nil
}

// commitTime returns the time of the commit, which all files of an archive have. It
// returns an error if the binaries hold anything but that commit.
func commitTime(info *buildinfo.BuildInfo) (time.Time, error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	switch {
	case settings["vcs.revision"] == "":
		return time.Time{}, errors.New("the folder is no git checkout: a release is built from a commit")
	case settings["vcs.modified"] != "false":
		return time.Time{}, errors.New("there are changes that are not committed: a release is built from a commit")
	}
	return time.Parse(time.RFC3339, settings["vcs.time"])
}

func (f *file) mode() os.FileMode {
	if f.exec {
		return 0o755
	}
	return 0o644
}

func tarball(folder string, files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	packer := gzip.NewWriter(&out)
	w := tar.NewWriter(packer)
	for _, f := range files {
		err := w.WriteHeader(&tar.Header{
			Name: folder + "/" + f.name, Mode: int64(f.mode()), Size: int64(len(f.data)), ModTime: made, Uname: "root", Gname: "root", Format: tar.FormatPAX,
		})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), packer.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(folder string, files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: made.UTC()}
		header.SetMode(f.mode())
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(entry, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
