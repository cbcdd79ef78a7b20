package docs

import "embed"

// A variable of its own: the linker leaves it out of programs that don't call Guides.
//
//go:embed *.md skills/gateway-go/SKILL.md
var guides embed.FS

// Guides returns all pages of the documentation.
func Guides() embed.FS { return guides }
