package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// file is a source file that has mutants.
type file struct {
	name  string // "internal/spec/card.go"
	src   []byte
	fset  *token.FileSet
	ast   *ast.File
	info  *types.Info
	units []*unit
}

func (f *file) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *file) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// module is the code under mutation, with all its mutants.
type module struct {
	files   []*file
	units   []*unit
	mutants []*mutant          // mutant number n has index n-1
	exports map[string]string  // import path to export data
	other   map[string][]*file // directory to its files without mutants
}

// load finds the mutants of the files of the areas and drops those that do not
// compile.
func load(areas []area) (*module, error) {
	m := &module{exports: map[string]string{}, other: map[string][]*file{}}
	dirs := map[string][]string{}
	for _, a := range areas {
		for _, pattern := range a.files {
			dirs[filepath.Dir(pattern)] = append(dirs[filepath.Dir(pattern)], pattern)
		}
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "os", "strconv", "sync/atomic"}
	for dir := range dirs {
		args = append(args, "./"+dir)
	}
	out, err := command(".", args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), " ")
		m.exports[path] = export
	}
	for dir, patterns := range dirs {
		if err := m.parse(dir, patterns); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(m.files, func(a, b *file) int { return cmp.Compare(a.name, b.name) })
	for _, f := range m.files {
		f.findUnits()
		for _, u := range f.units {
			u.unread = map[ast.Expr]bool{}
			u.mutate()
		}
	}
	for dir := range dirs {
		if err := m.dropBroken(dir); err != nil {
			return nil, err
		}
	}
	m.count()
	seen := map[string]int{}
	for _, mutant := range m.mutants {
		mutant.identify(seen)
	}
	return m, nil
}

// of returns the mutants of an area.
func (m *module) of(a area) []*mutant {
	return slices.DeleteFunc(slices.Clone(m.mutants), func(m *mutant) bool { return !a.has(m.unit.file.name) })
}

// parse reads a package and determines the types of its expressions.
func (m *module) parse(dir string, patterns []string) error {
	out, err := command(dir, "list", "-f", "{{range .GoFiles}}{{.}} {{end}}")
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	var syntax []*ast.File
	for name := range strings.FieldsSeq(string(out)) {
		f := &file{name: filepath.Join(dir, name), fset: fset, info: info}
		if f.src, err = os.ReadFile(f.name); err != nil {
			return err
		}
		if f.ast, err = parser.ParseFile(fset, f.name, f.src, parser.SkipObjectResolution); err != nil {
			return err
		}
		syntax = append(syntax, f.ast)
		matches := func(pattern string) bool { ok, _ := filepath.Match(pattern, f.name); return ok }
		if slices.ContainsFunc(patterns, matches) {
			m.files = append(m.files, f)
		} else {
			m.other[dir] = append(m.other[dir], f)
		}
	}
	return m.check(fset, syntax, info, nil)
}

// check type-checks a package. It passes errors to report or, if that is nil,
// returns the first one.
func (m *module) check(fset *token.FileSet, syntax []*ast.File, info *types.Info, report func(error)) error {
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(m.exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup), Error: report}
	_, err := config.Check("p", fset, syntax, info)
	if report != nil {
		return nil
	}
	return err
}

// findUnits finds the functions of f, and its package-level variables.
func (f *file) findUnits() {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.findFunction(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR && len(v.Names) == 1 && len(v.Values) == 1 {
					qualifier := func(p *types.Package) string {
						if p.Path() == "p" {
							return ""
						}
						return p.Name()
					}
					result := types.TypeString(f.info.Defs[v.Names[0]].Type(), qualifier)
					f.units = append(f.units, &unit{file: f, name: v.Names[0].Name, results: result, body: v.Values[0]})
				}
			}
		}
	}
}

func (f *file) findFunction(d *ast.FuncDecl) {
	if d.Body == nil || len(d.Body.List) == 0 {
		return
	}
	u := &unit{file: f, name: d.Name.Name, body: d.Body, early: true}
	if d.Recv != nil {
		receiver := strings.TrimLeft(f.text(d.Recv.List[0].Type), "*")
		u.name = receiver + "." + u.name
	}
	if d.Type.Results != nil {
		u.results = f.text(d.Type.Results)
		u.early = len(d.Type.Results.List[0].Names) > 0
	}
	f.units = append(f.units, u)
}

// mutated returns the source of f with all mutants, and the position of each in it.
func (f *file) mutated() (source []byte, places map[*mutant][2]int) {
	var b bytes.Buffer
	places = map[*mutant][2]int{}
	done := 0
	for _, u := range f.units {
		start, end := f.offset(u.body.Pos()), f.offset(u.body.End())
		b.Write(f.src[done:start])
		body, isFunction := u.body.(*ast.BlockStmt)
		if isFunction {
			start = f.offset(body.Lbrace) + 1
			b.WriteString("{ ")
		} else {
			fmt.Fprintf(&b, "func() %s { ", u.results)
		}
		fmt.Fprintf(&b, "switch mutant__ { case -1: reach__(%d)\n", u.number)
		for _, m := range u.mutants {
			begin := b.Len()
			inner := fmt.Sprintf("%s%s%s", f.src[start:m.start], m.text, f.src[m.end:end])
			switch {
			case !isFunction:
				fmt.Fprintf(&b, "case %d: return %s\n", m.number, inner)
			case u.results == "":
				fmt.Fprintf(&b, "case %d: func() { %s(); return\n", m.number, inner)
			default:
				fmt.Fprintf(&b, "case %d: return func() %s { %s()\n", m.number, u.results, inner)
			}
			places[m] = [2]int{begin, b.Len()}
		}
		b.WriteString("}\n")
		if isFunction {
			b.Write(f.src[start:end])
		} else {
			fmt.Fprintf(&b, "return %s }()", f.src[start:end])
		}
		done = end
	}
	b.Write(f.src[done:])
	return b.Bytes(), places
}

// dropBroken drops the mutants of a package that do not compile.
func (m *module) dropBroken(dir string) error {
	for range 10 {
		m.count()
		fset := token.NewFileSet()
		var syntax []*ast.File
		places := map[string]map[*mutant][2]int{}
		for _, f := range m.other[dir] {
			parsed, err := parser.ParseFile(fset, f.name, f.src, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			syntax = append(syntax, parsed)
		}
		for _, f := range m.files {
			if filepath.Dir(f.name) != dir {
				continue
			}
			source, where := f.mutated()
			parsed, err := parser.ParseFile(fset, f.name, source, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("mutants of %w", err)
			}
			places[f.name] = where
			syntax = append(syntax, parsed)
		}
		parsed, err := parser.ParseFile(fset, "switch.go", switchSource(syntax[0].Name.Name, len(m.units)), 0)
		if err != nil {
			return err
		}
		if found, err := m.markBroken(fset, append(syntax, parsed), places); found == 0 || err != nil {
			return err
		}
		for _, u := range m.units {
			u.mutants = slices.DeleteFunc(u.mutants, func(m *mutant) bool { return m.broken })
		}
	}
	return fmt.Errorf("%s: after 10 passes some mutants still do not compile", dir)
}

// markBroken marks the mutants in which the compiler found errors.
func (m *module) markBroken(fset *token.FileSet, syntax []*ast.File, places map[string]map[*mutant][2]int) (n int, err error) {
	report := func(problem error) {
		e, ok := problem.(types.Error) //nolint:errorlint // as package types documents
		at := fset.Position(e.Pos)
		for mutant, place := range places[at.Filename] {
			if ok && at.Offset >= place[0] && at.Offset < place[1] {
				mutant.broken = true
				n++
				return
			}
		}
		err = cmp.Or(err, problem)
	}
	if checked := m.check(fset, syntax, nil, report); checked != nil {
		return n, checked
	}
	return n, err
}

// count numbers units and mutants.
func (m *module) count() {
	m.units, m.mutants = nil, nil
	for _, f := range m.files {
		for _, u := range f.units {
			u.number = len(m.units)
			m.units = append(m.units, u)
			for _, mutant := range u.mutants {
				m.mutants = append(m.mutants, mutant)
				mutant.number = len(m.mutants)
			}
		}
	}
}

// identify sets the id of a mutant: its file, its function, and its line before and
// after the change. It remains valid if other code changes.
func (m *mutant) identify(seen map[string]int) {
	src := m.unit.file.src
	from := bytes.LastIndexByte(src[:m.start], '\n') + 1
	line := func(b []byte) string {
		text, _, _ := strings.Cut(string(b), "\n")
		code, _, _ := strings.Cut(text, " // ") // comments change more often than code
		return strings.TrimSpace(code)
	}
	before := line(src[from:])
	after := line(slices.Concat(src[from:m.start], []byte(m.text), src[m.end:]))
	if m.start == m.unit.file.offset(m.unit.body.Pos())+1 && m.text == "return" {
		before, after = "{ … }", "{ return }"
	}
	where, change := m.unit.file.name+" "+m.unit.name, strings.TrimSpace("\n- "+before+"\n+ "+after)
	m.id = where + "\n" + change
	if seen[m.id]++; seen[m.id] > 1 {
		m.id = fmt.Sprintf("%s #%d\n%s", where, seen[m.id], change)
	}
}

// switchSource returns the file that is added to each package with mutants.
func switchSource(name string, units int) string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutant__, _ = strconv.Atoi(os.Getenv("MUTANT"))

var reached__ [%d]atomic.Bool

func reach__(unit int) {
	if reached__[unit].Swap(true) {
		return
	}
	f, err := os.OpenFile(os.Getenv("MUTANT_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString(strconv.Itoa(unit) + "\n")
	_ = f.Close()
}
`, name, units)
}

// writeOverlay writes the files with the chosen mutants, and the overlay file
// for go build -overlay, whose path it returns.
func (m *module) writeOverlay(dir string, chosen []*mutant) (string, error) {
	keep := map[*mutant]bool{}
	for _, c := range chosen {
		keep[c] = true
	}
	for _, u := range m.units {
		u.mutants = slices.DeleteFunc(u.mutants, func(m *mutant) bool { return !keep[m] })
	}
	replace := map[string]string{}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	write := func(name, source string) error {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root, name)] = to
		return os.WriteFile(to, []byte(source), 0o600)
	}
	for _, f := range m.files {
		source, _ := f.mutated()
		err := cmp.Or(
			write(f.name, string(source)),
			write(filepath.Join(filepath.Dir(f.name), "mutants__.go"), switchSource(f.ast.Name.Name, len(m.units))))
		if err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// command runs a go command in a folder, and so for the module there.
func command(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // runs only go
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}
