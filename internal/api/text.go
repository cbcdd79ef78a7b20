package api

import (
	"go/ast"
	"go/types"
	"strings"
)

// text returns the source of a type or a value. Parameter names are omitted,
// because they may change.
func text(e ast.Expr) string {
	ast.Inspect(e, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok {
			f.Params, f.Results = unnamed(f.Params), unnamed(f.Results)
		}
		return true
	})
	return types.ExprString(e)
}

// unnamed returns a list of parameters without names.
func unnamed(list *ast.FieldList) *ast.FieldList {
	if list == nil {
		return nil
	}
	plain := &ast.FieldList{}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			plain.List = append(plain.List, &ast.Field{Type: f.Type})
		}
	}
	return plain
}

func typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var params []string
	for _, f := range list.List {
		for _, name := range f.Names {
			params = append(params, name.Name+" "+text(f.Type))
		}
	}
	return "[" + strings.Join(params, ", ") + "]"
}
