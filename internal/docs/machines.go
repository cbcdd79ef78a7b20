package docs

import (
	"regexp"
	"slices"
	"strings"
)

// Machine is one diagram of docs/states.md, which a test compares with every
// transition of the engine.
type Machine struct {
	Title string // "Transactions"
	Edges []Edge // in the document's order
}

// Edge is a change of state; From is "" where the resource is created.
type Edge struct{ From, To string }

// States lists the states in the order in which the diagram names them.
func (m Machine) States() []string {
	var list []string
	for _, e := range m.Edges {
		for _, s := range [...]string{e.From, e.To} {
			if s != "" && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// Machines returns the first diagram of each section of docs/states.md: a second one is
// only about the live dialect.
func Machines() []Machine {
	arrow := regexp.MustCompile(`(?m)^ +(\S+) --> (\S+?)(?:: .+)?$`)
	var list []Machine
	for section := range strings.SplitSeq(string(file("states.md")), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		m := Machine{Title: title}
		_, diagram, _ := strings.Cut(section, "\n```mermaid\n")
		diagram, _, _ = strings.Cut(diagram, "\n```")
		for _, found := range arrow.FindAllStringSubmatch(diagram, -1) {
			m.Edges = append(m.Edges, Edge{strings.TrimPrefix(found[1], "[*]"), found[2]})
		}
		if len(m.Edges) > 0 {
			list = append(list, m)
		}
	}
	return list
}
