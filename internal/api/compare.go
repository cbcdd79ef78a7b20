package api

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// Compare lists the breaking changes between two versions of an API: what was
// removed or changed, and methods added to interfaces. Other additions are allowed.
func Compare(before, now []string) []string {
	changed := map[string]string{}
	for _, line := range now {
		if !slices.Contains(before, line) {
			changed[subject(line)] = line
		}
	}
	var broken []string
	for _, line := range before {
		switch replaced := changed[subject(line)]; {
		case slices.Contains(now, line):
		case replaced != "":
			broken = append(broken, fmt.Sprintf("changed: %s\n     to: %s", line, replaced))
		default:
			broken = append(broken, "removed: "+line)
		}
	}
	return append(broken, addedMethods(before, now)...)
}

// addedMethods lists the methods that were added to interfaces, which breaks their
// implementations. Interfaces with an unexported method are skipped, because they
// have no implementations outside the module.
func addedMethods(before, now []string) (broken []string) {
	for _, line := range now {
		of, member, isMember := strings.Cut(line, " interface, ")
		if !isMember || slices.Contains(before, line) || !slices.Contains(before, of+" interface") {
			continue
		}
		sealed := slices.ContainsFunc(before, func(line string) bool {
			other, member, isMember := strings.Cut(line, " interface, ")
			return isMember && other == of && !exported(member)
		})
		if !sealed && exported(member) {
			broken = append(broken, "added to an interface: "+line)
		}
	}
	return broken
}

func exported(member string) bool {
	return strings.HasPrefix(member, "embedded ") || ast.IsExported(member)
}

// subject returns the part of a line that names what it declares.
func subject(line string) string {
	var member int
	switch {
	case strings.Contains(line, " struct, "):
		member = strings.Index(line, " struct, ") + len(" struct, ")
	case strings.Contains(line, " interface, "):
		member = strings.Index(line, " interface, ") + len(" interface, ")
	case strings.Contains(line, ", method ("):
		member = strings.Index(line, ") ") + len(") ")
	default: // after "pkg p, func "
		of, declaration, _ := strings.Cut(line, ", ")
		member = len(of) + len(", ") + strings.Index(declaration, " ") + 1
	}
	end := strings.IndexAny(line[member:], " ([")
	if end < 0 {
		return line
	}
	return line[:member+end]
}
