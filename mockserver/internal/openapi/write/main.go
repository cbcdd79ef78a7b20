// Command write writes the OpenAPI documents in docs/; see package openapi.
package main

import (
	"fmt"
	"os"
	"path/filepath"

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
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil { //nolint:gosec // read by everyone
			return err
		}
	}
	return nil
}
