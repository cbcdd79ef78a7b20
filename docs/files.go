// Package docs embeds the documents that the mock gateway serves, so that it shows the
// same text as the documentation.
package docs

import "embed"

// The archive contains the OpenAPI documents: without compression, they would add
// 550 KB to every binary. "go generate ./mockserver/internal/openapi" writes it.
//
//go:embed assumptions.md states.md openapi.zip
var files embed.FS

// Files returns assumptions.md, states.md and openapi.zip.
func Files() embed.FS { return files }
