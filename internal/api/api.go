// Package api lists the exported API of the module, one declaration per line, in
// the format of Go's own api/*.txt files:
//
//	pkg gateway, func New(string, Credential, ...Option) (*Client, error)
//	pkg gateway, type Transaction struct, Amount int64
//
// api/next.txt is the API of the next release. To update it:
//
//	go run ./internal/api/list >api/next.txt
//
// Each release keeps a copy of it, such as api/v1.2.0.txt. Later releases of the
// same major version must keep these declarations: see [Compare].
package api

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// List returns the sorted lines of every package below root that other modules can
// import.
func List(root string) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != root && private(path, entry.Name()):
			return filepath.SkipDir
		}
		found, err := listPackage(path)
		lines = append(lines, found...)
		return err
	})
	slices.Sort(lines)
	return slices.Compact(lines), err
}

// private reports whether a folder has no package of this module that others can
// import.
func private(path, name string) bool {
	if strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "testdata", "examples", "cmd", "node_modules"}, name) {
		return true
	}
	nested, _ := filepath.Glob(filepath.Join(path, "go.mod")) // fails only for invalid patterns
	return len(nested) > 0
}

// listPackage lists the package in a folder as built for Linux.
func listPackage(dir string) ([]string, error) {
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", false
	found, err := target.ImportDir(dir, 0)
	if err != nil || found.Name == "main" {
		return nil, nil //nolint:nilerr // a folder without a package
	}
	var decls []ast.Decl
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		decls = append(decls, file.Decls...)
	}
	l := lister{pkg: found.Name, embedded: embedded(decls)}
	for _, decl := range decls {
		l.declaration(decl)
	}
	return l.lines, nil
}

// embedded returns the names of the types that exported structs embed: also if they are
// unexported, their methods are those of the structs.
func embedded(decls []ast.Decl) map[string]bool {
	names := make(map[string]bool)
	for _, decl := range decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() {
				return true
			}
			if t, ok := s.Type.(*ast.StructType); ok {
				for _, f := range t.Fields.List {
					if len(f.Names) == 0 {
						names[base(f.Type)] = true
					}
				}
			}
			return false
		})
	}
	return names
}

type lister struct {
	pkg      string
	embedded map[string]bool
	lines    []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, "pkg "+l.pkg+", "+fmt.Sprintf(format, args...))
}

func (l *lister) declaration(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		l.function(d)
	case *ast.GenDecl:
		l.group(d)
	}
}

func (l *lister) function(d *ast.FuncDecl) {
	signature := strings.TrimPrefix(text(d.Type), "func")
	switch {
	case !d.Name.IsExported():
	case d.Recv == nil:
		l.add("func %s%s%s", d.Name, typeParams(d.Type.TypeParams), signature)
	case ast.IsExported(base(d.Recv.List[0].Type)), l.embedded[base(d.Recv.List[0].Type)]:
		l.add("method (%s) %s%s", text(d.Recv.List[0].Type), d.Name, signature)
	}
}

// base returns the name of a type without its pointer and parameters.
func base(t ast.Expr) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(text(t), "*"), "[")
	return name
}

// group lists a declaration of constants, variables or types. A constant without a
// value has the previous one's expression, with its own iota.
func (l *lister) group(d *ast.GenDecl) {
	var last *ast.ValueSpec
	for i, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				l.typed(s)
			}
		case *ast.ValueSpec:
			if d.Tok == token.VAR || last == nil || len(s.Values) > 0 {
				last = s
			}
			l.values(d.Tok, s, last, i)
		}
	}
}

func (l *lister) values(tok token.Token, s, effective *ast.ValueSpec, iota int) {
	for i, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		line := tok.String() + " " + name.Name
		if effective.Type != nil {
			line += " " + text(effective.Type)
		}
		if tok == token.CONST && i < len(effective.Values) {
			line += " = " + strings.ReplaceAll(text(effective.Values[i]), "iota", fmt.Sprintf("iota(%d)", iota))
		}
		l.add("%s", line)
	}
}

func (l *lister) typed(s *ast.TypeSpec) {
	name := s.Name.Name + typeParams(s.TypeParams)
	if s.Assign.IsValid() {
		l.add("type %s = %s", name, text(s.Type))
		return
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("type %s struct", name)
		l.members("type "+name+" struct", t.Fields, ast.IsExported)
	case *ast.InterfaceType:
		l.add("type %s interface", name)
		l.members("type "+name+" interface", t.Methods, func(string) bool { return true }) // an unexported method seals the interface
	default:
		l.add("type %s %s", name, text(t))
	}
}

func (l *lister) members(of string, list *ast.FieldList, include func(string) bool) {
	for _, f := range list.List {
		if len(f.Names) == 0 {
			l.add("%s, embedded %s", of, text(f.Type))
		}
		for _, name := range f.Names {
			if include(name.Name) {
				l.add("%s, %s %s", of, name, text(f.Type))
			}
		}
	}
}
