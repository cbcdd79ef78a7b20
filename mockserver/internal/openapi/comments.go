package openapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// comments holds the doc comments of a few packages.
type comments struct {
	types   map[string]string // "gateway.Transaction"
	fields  map[string]string // "gateway.Transaction.PaidAt"
	methods map[string]string // "gateway.TransactionsService.Create"
	wire    map[string]string // the values of constants: "RetryThenCancel" is "retry_then_cancel"
}

// readComments parses the packages in the folders, by their import names.
func readComments(folders map[string]string) (*comments, error) {
	c := &comments{types: map[string]string{}, fields: map[string]string{}, methods: map[string]string{}, wire: map[string]string{}}
	for pkg, dir := range folders {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("openapi: no Go files in %s: %w", dir, fs.ErrNotExist)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			c.add(pkg, file)
		}
	}
	return c, nil
}

func (c *comments) add(pkg string, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				c.methods[pkg+"."+receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = plain(d.Doc.Text())
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					c.addType(pkg, s, d.Doc)
				case *ast.ValueSpec:
					c.addConstant(s)
				}
			}
		}
	}
}

func (c *comments) addType(pkg string, t *ast.TypeSpec, doc *ast.CommentGroup) {
	name := pkg + "." + t.Name.Name
	if t.Doc != nil {
		doc = t.Doc
	}
	c.types[name] = withoutName(described(doc.Text()), t.Name.Name)
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			c.fields[name+"."+n.Name] = described(f.Doc.Text() + " " + f.Comment.Text())
		}
	}
}

func (c *comments) addConstant(s *ast.ValueSpec) {
	for i, n := range s.Names {
		if i < len(s.Values) {
			if lit, ok := s.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				c.wire[n.Name] = strings.Trim(lit.Value, `"`)
			}
		}
	}
}

// onTheWire replaces Go names by those on the wire: of constants and of t's
// fields. A name of one word is only recognized within a sentence, and only as a
// field.
func (c *comments) onTheWire(s string, t reflect.Type) string {
	s = oneWord.ReplaceAllStringFunc(s, func(match string) string {
		before, name := match[:2], match[2:]
		if wire := wireName(t, name); wire != "" && wire != "-" {
			return before + wire
		}
		return match
	})
	return goName.ReplaceAllStringFunc(s, func(name string) string {
		if v, ok := c.wire[name]; ok {
			return v
		}
		if wire := wireName(t, name); wire != "" {
			return wire
		}
		return name
	})
}

func receiver(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// withoutName removes the type's name from its comment: "Fee is what the
// gateway keeps" is "What the gateway keeps".
func withoutName(s, name string) string {
	rest, ok := strings.CutPrefix(s, name+" ")
	if !ok {
		return s
	}
	for _, verb := range []string{"is ", "are ", "holds "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// plain puts a comment on one line.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

var (
	goLink   = regexp.MustCompile(`\[[A-Za-z.]*\]`)
	sentence = regexp.MustCompile(`[^.]+(\.\S[^.]*)*(\.|$)`)
	aboutGo  = regexp.MustCompile(`\b(client|zero value|at its zero|package|this version|concurrent|Raw|[Pp]rint(s|ed|ing)?|no zero|(is|are) zero|came in|fills|nil|Reveal|decoded|with Get|Full)\b`)
	bare1    = regexp.MustCompile(`^(Nullable|nullable|required|Required)\.?$`)
	nullable = regexp.MustCompile(`^[Nn]ullable[,:] `) // the schema says so
	goName   = regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][a-z]*|ID|URL)+\b`)
	oneWord  = regexp.MustCompile(`([a-z_0-9,] )([A-Z][a-z]+|ID)\b`) // within a sentence
	clause   = regexp.MustCompile(`(?:"[^"]*"|[^;"])+`)              // a semicolon in quotes is part of a value
)

// described returns the part of a comment that is about the wire: sentences
// about Go types, which link to them or mention zero values, are dropped.
func described(s string) string {
	var kept []string
	for _, part := range sentence.FindAllString(plain(s), -1) {
		for _, text := range clause.FindAllString(part, -1) {
			text = nullable.ReplaceAllString(strings.TrimSpace(text), "")
			if text != "" && text != "." && !bare1.MatchString(text) && !goLink.MatchString(text) && !aboutGo.MatchString(text) {
				kept = append(kept, sentenceCase(text))
			}
		}
	}
	return strings.Join(kept, " ")
}

func sentenceCase(s string) string {
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
