package api

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// Compare describes what was removed from an API or changed; additions are allowed.
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
			broken = append(broken, "gone: "+line)
		}
	}
	return append(broken, grown(before, now)...)
}

// grown returns the methods that were added to interfaces, which breaks their
// implementations. Interfaces with an unexported method have none outside the module.
func grown(before, now []string) (broken []string) {
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

// subject returns the start of a line that names what it declares.
func subject(line string) string {
	var member int
	switch {
	case strings.Contains(line, " struct, "):
		member = strings.Index(line, " struct, ") + len(" struct, ")
	case strings.Contains(line, " interface, "):
		member = strings.Index(line, " interface, ") + len(" interface, ")
	case strings.Contains(line, ", method ("):
		member = strings.Index(line, ") ") + len(") ")
	default: // behind "pkg p, func "
		of, declaration, _ := strings.Cut(line, ", ")
		member = len(of) + len(", ") + strings.Index(declaration, " ") + 1
	}
	end := strings.IndexAny(line[member:], " ([")
	if end < 0 {
		return line
	}
	return line[:member+end]
}
