package docs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
)

// row is a line of the table in interface.md.
type row struct {
	route   string // "GET /v2/customers/{id}"
	methods []string
	class   string
	tests   []string
}

func TestInterfaceTableHasEveryEndpoint(t *testing.T) {
	t.Parallel()
	written, known := map[string]string{}, map[string]bool{}
	for _, r := range interfaceTable(t) {
		assert.NotContains(t, written, r.route, "docs/interface.md has two rows for this route")
		written[r.route] = r.class
	}
	for op := range spec.Operations() {
		route := op.Method + " " + op.Path
		if class, ok := written[route]; assert.True(t, ok, "docs/interface.md has no row for %s", route) {
			assert.Equal(t, op.Class.String(), class, "the class of %s in docs/interface.md", route)
		}
		known[route] = true
	}
	for route := range written {
		assert.True(t, known[route], "docs/interface.md has a row for %s, which is not in internal/spec", route)
	}
}

func TestInterfaceTableHasEveryMethod(t *testing.T) {
	t.Parallel()
	var written []string
	for _, r := range interfaceTable(t) {
		assert.NotEmpty(t, r.methods, r.route)
		written = append(written, r.methods...)
	}
	methods := serviceMethods()
	for _, method := range methods {
		assert.True(t, slices.Contains(written, method), "docs/interface.md has no row with the method %s", method)
	}
	for i, method := range written {
		assert.True(t, slices.Contains(methods, method), "docs/interface.md has the method %s, but the client does not", method)
		assert.False(t, slices.Contains(written[:i], method), "docs/interface.md has the method %s twice", method)
	}
}

// The mock serves every endpoint of the table: for an unsupported method, it responds
// with the methods that it supports.
func TestMockServesTheInterfaceTable(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	for _, r := range interfaceTable(t) {
		method, path, _ := strings.Cut(r.route, " ")
		path = strings.NewReplacer("{id}", "x", "{slug}", "xyz", "{public_token}", "x").Replace(path)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, mockserver.BaseURL+path, nil)
		require.NoError(t, err)
		request.Header.Set("Apikey", gw.Key())
		response, err := gw.Transport().RoundTrip(request)
		require.NoError(t, err)
		assert.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusMethodNotAllowed, response.StatusCode, "the mock has no route for %s: add it to mockserver/internal/httpapi", r.route)
		assert.Contains(t, strings.Split(response.Header.Get("Allow"), ", "), method, r.route)
	}
}

// One of the tests of a row, or a function that it uses, calls each method of the row.
func TestInterfaceTableNamesRealTests(t *testing.T) {
	t.Parallel()
	packages := testPackages(t, "..")
	for _, r := range interfaceTable(t) {
		assert.NotEmpty(t, r.tests, r.route)
		called := map[string]bool{}
		for _, name := range r.tests {
			i := slices.IndexFunc(packages, func(functions functions) bool { return functions[name] != nil })
			if assert.GreaterOrEqual(t, i, 0, "%s: there is no %s", r.route, name) {
				packages[i].calls(name, called, map[string]bool{})
			}
		}
		for _, m := range r.methods {
			assert.True(t, called[m], "%s: no test of the row calls %s", r.route, m)
		}
	}
}

// functions are the functions in the test files of one package, by name.
type functions map[string]*ast.BlockStmt

// calls adds to called the methods that a function and those it uses call:
// client.Customers.Get as "Customers.Get", anything.Balance as "legacy.Balance".
func (f functions) calls(name string, called, visited map[string]bool) {
	if f[name] == nil || visited[name] {
		return
	}
	visited[name] = true
	ast.Inspect(f[name], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			f.calls(n.Name, called, visited)
		case *ast.SelectorExpr:
			called["legacy."+n.Sel.Name] = true
			if service, ok := n.X.(*ast.SelectorExpr); ok {
				called[service.Sel.Name+"."+n.Sel.Name] = true
			}
		}
		return true
	})
}

// Every method of every service has an example whose output is checked.
func TestEveryMethodHasAnExample(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, dir := range []string{"..", "../legacy"} {
		for _, example := range doc.Examples(parseDir(t, dir, isTestFile)...) {
			shown[dir+" "+example.Name] = example.Output != ""
		}
	}
	for f := range reflect.TypeFor[gateway.Client]().Fields() {
		if f.IsExported() {
			for m := range f.Type.Methods() {
				assert.True(t, shown[".. "+f.Type.Elem().Name()+"_"+m.Name], "there is no Example%s_%s with an output", f.Type.Elem().Name(), m.Name)
			}
		}
	}
	for m := range reflect.TypeFor[*legacy.Client]().Methods() {
		assert.True(t, shown["../legacy Client_"+m.Name], "package legacy has no ExampleClient_%s with an output", m.Name)
	}
}

// interfaceTable reads the lines of interface.md whose first cell is a route.
func interfaceTable(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("interface.md")
	require.NoError(t, err)
	var rows []row
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		require.Len(t, cells, 4, line)
		rows = append(rows, row{
			route: names(cells[0])[0], methods: names(cells[1]), class: strings.TrimSpace(cells[2]), tests: names(cells[3]),
		})
	}
	require.NotEmpty(t, rows)
	return rows
}

// names returns the strings between backquotes.
func names(cell string) []string {
	var out []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// serviceMethods returns "Customers.Get" and the like for every method of every
// service of the client, and "legacy.Balance" for those of the v1 client.
func serviceMethods() []string {
	var out []string
	for f := range reflect.TypeFor[gateway.Client]().Fields() {
		if f.IsExported() {
			for m := range f.Type.Methods() {
				out = append(out, f.Name+"."+m.Name)
			}
		}
	}
	for m := range reflect.TypeFor[*legacy.Client]().Methods() {
		out = append(out, "legacy."+m.Name)
	}
	return out
}

// testPackages returns the functions in the test files of dir and of each directory below
// it that belongs to this module.
func testPackages(t *testing.T, dir string) []functions {
	t.Helper()
	var out []functions
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if path != dir && (strings.HasPrefix(entry.Name(), ".") || exists(filepath.Join(path, "go.mod"))) {
			return filepath.SkipDir
		}
		found := functions{}
		for _, f := range parseDir(t, path, isTestFile) {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					found[fn.Name.Name] = fn.Body
				}
			}
		}
		out = append(out, found)
		return nil
	}))
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isTestFile(name string) bool { return strings.HasSuffix(name, "_test.go") }

func parseDir(t *testing.T, dir string, want func(name string) bool) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var files []*ast.File
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || !want(entry.Name()) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}
