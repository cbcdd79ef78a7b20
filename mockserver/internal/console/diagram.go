package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/docs"
)

// diagram is the layout of a state machine: its states are in columns, so that
// most transitions lead to the right.
type diagram struct {
	Width, Height int
	States        []drawnState
	Edges         []drawnEdge
	Text          string // the same for a screen reader
}

type drawnState struct {
	Name, Label   string
	X, Y          int
	Width, Height int
	Current       bool
	Next          bool // the current state leads there
}

// Middle is where the name is, from the left.
func (drawnState) Middle() int { return stateWidth / 2 }

type drawnEdge struct {
	Path string
	Next bool // from the current state
}

const (
	stateWidth, stateHeight = 132, 28
	columnGap, rowGap       = 44, 16
	margin                  = 14
)

// newDiagram draws the machine of docs/states.md with a title, and marks a state.
// One that the machine does not have, such as one that only the sandbox can set,
// is drawn alone. If a diagram has two resources, only the states of one are
// kept.
func newDiagram(title, current string, only ...string) diagram {
	var m docs.Machine
	for _, other := range docs.Machines() {
		if other.Title == title {
			m = other
		}
	}
	if len(only) > 0 {
		m.Edges = slices.DeleteFunc(m.Edges, func(e docs.Edge) bool { return !slices.Contains(only, e.To) })
		if !slices.Contains(only, current) { // the document distinguishes it from a session's state
			current = "link_" + current
		}
	}
	states := m.States()
	if !slices.Contains(states, current) {
		states = append(states, current)
	}
	column := columns(states, m.Edges)
	d := diagram{}
	at := map[string]drawnState{}
	filled := map[int]int{} // rows by column
	for _, name := range states {
		c := column[name]
		s := drawnState{
			Name: name, Label: strings.TrimPrefix(name, "link_"), Current: name == current,
			Next: slices.Contains(m.Edges, docs.Edge{From: current, To: name}) && name != current,
			X:    margin + c*(stateWidth+columnGap), Y: margin + filled[c]*(stateHeight+rowGap),
			Width: stateWidth, Height: stateHeight,
		}
		filled[c]++
		at[name] = s
		d.States = append(d.States, s)
		d.Width, d.Height = max(d.Width, s.X+stateWidth+margin), max(d.Height, s.Y+stateHeight+margin)
	}
	d.Text = "It is " + current + "."
	for _, e := range m.Edges {
		if e.From == "" || e.From == e.To {
			continue
		}
		d.Edges = append(d.Edges, drawnEdge{curve(at[e.From], at[e.To]), e.From == current})
		if e.From == current {
			d.Text += " It can become " + e.To + "."
		}
	}
	return d
}

// columns assigns each state its longest distance from the start, ignoring
// transitions that lead back.
func columns(states []string, edges []docs.Edge) map[string]int {
	column := map[string]int{}
	onWay := map[string]bool{}
	var visit func(state string, c int)
	visit = func(state string, c int) {
		if before, seen := column[state]; seen && before >= c {
			return
		}
		column[state] = c
		onWay[state] = true
		for _, e := range edges {
			if e.From == state && !onWay[e.To] {
				visit(e.To, c+1)
			}
		}
		onWay[state] = false
	}
	for _, e := range edges {
		if e.From == "" {
			visit(e.To, 0)
		}
	}
	for _, s := range states {
		visit(s, 0)
	}
	return column
}

// curve is the path of an arrow between two states.
func curve(from, to drawnState) string {
	fromY, toY := from.Y+stateHeight/2, to.Y+stateHeight/2
	switch {
	case to.X > from.X+stateWidth+columnGap: // between the rows, so that no state of the columns in between hides it
		x1, x2 := from.X+stateWidth, to.X
		lane := from.Y + stateHeight + rowGap/2
		if toY < fromY {
			lane = from.Y - rowGap/2
		}
		bend := columnGap / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %dH%dC%d %d %d %d %d %d", x1, fromY, x1+bend, fromY, x1+bend, lane, x1+columnGap, lane,
			x2-columnGap, x2-bend, lane, x2-bend, toY, x2-2, toY)
	case to.X > from.X:
		x1, x2 := from.X+stateWidth, to.X
		bend := (x2 - x1) / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, fromY, x1+bend, fromY, x2-bend, toY, x2-2, toY)
	case to.X == from.X: // around the right side
		x := from.X + stateWidth
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, fromY, x+columnGap/2, fromY, x+columnGap/2, toY, x+2, toY)
	default: // back, below
		x1, x2 := from.X+stateWidth/2, to.X+stateWidth/2
		y1, y2 := from.Y+stateHeight, to.Y+stateHeight
		low := max(y1, y2) + rowGap
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, low, x2, low, x2, y2+2)
	}
}
