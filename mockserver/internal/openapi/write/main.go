// Command write writes the OpenAPI documents in docs/, and openapi.zip, which is what
// binaries embed; see package openapi.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gateway-go/gateway/mockserver/internal/openapi"
)

func main() {
	if err := write(filepath.Join("..", "..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := openapi.Files(root)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(root, name), files[name], 0o644); err != nil { //nolint:gosec // read by everyone
			return err
		}
		w, err := archive.Create(filepath.Base(name))
		if err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "openapi.zip"), packed.Bytes(), 0o644) //nolint:gosec // as above
}
