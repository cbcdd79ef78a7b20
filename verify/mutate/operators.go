package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// unit is a function or the initial value of a package-level variable. All its
// mutants are compiled into it, and a switch selects one.
type unit struct {
	file    *file
	number  int
	name    string
	results string // the source between "func()" and the body
	early   bool   // may return without result values
	body    ast.Node
	mutants []*mutant
	unread  map[ast.Expr]bool // results that are not read because the last one is an error or false
}

// mutant is one change of a unit.
type mutant struct {
	unit       *unit
	number     int
	start, end int // the bytes of the file that are replaced
	text       string
	id         string // see [file.identify]
	broken     bool   // does not compile
}

// negated and bounded replace comparison operators; swapped replaces other
// operators.
var (
	negated = map[token.Token]string{
		token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.LEQ: ">", token.GTR: "<=", token.GEQ: "<",
	}
	bounded = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	swapped = map[token.Token]string{
		token.LAND: "||", token.LOR: "&&",
		token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
		token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&",
		token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
		token.INC: "--", token.DEC: "++",
	}
)

// mutate finds the mutants of a unit.
func (u *unit) mutate() {
	if body, ok := u.body.(*ast.BlockStmt); ok && u.early {
		u.replace(body.Lbrace+1, body.Rbrace, "return")
	}
	ast.Inspect(u.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			u.removals(n.List)
		case *ast.CaseClause:
			u.clause(n)
		case *ast.CommClause:
			u.removals(n.Body)
		case *ast.SwitchStmt:
			u.conditionsOf(n)
		case *ast.IfStmt:
			u.condition(n.Cond)
		case *ast.ForStmt:
			u.condition(n.Cond)
		case *ast.ReturnStmt:
			u.returned(n)
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				u.condition(n.X)
			}
		case *ast.BinaryExpr:
			u.binary(n)
		case *ast.IncDecStmt:
			u.operator(n.TokPos, n.Tok, swapped)
		case *ast.AssignStmt:
			u.operator(n.TokPos, n.Tok, swapped)
		case *ast.CallExpr:
			return !u.isSizeHint(n)
		case *ast.BasicLit, *ast.Ident:
			u.constant(n.(ast.Expr)) //nolint:forcetypeassert // both are expressions
		case *ast.SelectorExpr:
			u.constant(n)
			return !u.isConstant(n)
		}
		return true
	})
}

// isSizeHint reports whether n allocates a slice or map: a capacity is not
// observable behavior.
func (u *unit) isSizeHint(n *ast.CallExpr) bool {
	name, ok := n.Fun.(*ast.Ident)
	return ok && name.Name == "make"
}

// removals removes each statement that the syntax does not require.
func (u *unit) removals(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt, *ast.BranchStmt, *ast.ForStmt, *ast.RangeStmt:
			u.replace(s.Pos(), s.End(), "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				u.replace(s.Pos(), s.End(), "")
			}
		case *ast.IfStmt:
			if s.Else == nil {
				u.replace(s.Pos(), s.End(), "")
			}
		}
	}
}

// clause removes a case and, if it has several values, each of them.
func (u *unit) clause(n *ast.CaseClause) {
	u.replace(n.Pos(), n.End(), "")
	for i, value := range n.List {
		if len(n.List) == 1 {
			break
		}
		if i > 0 {
			u.replace(n.List[i-1].End(), value.End(), "")
		} else {
			u.replace(value.Pos(), n.List[1].Pos(), "")
		}
	}
	u.removals(n.Body)
}

// conditionsOf negates the cases of a tagless switch.
func (u *unit) conditionsOf(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, s := range n.Body.List {
		if c, ok := s.(*ast.CaseClause); ok {
			for _, cond := range c.List {
				u.condition(cond)
			}
		}
	}
}

// condition negates a condition that binary and constant do not handle.
func (u *unit) condition(n ast.Expr) {
	switch x := n.(type) {
	case nil, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr:
	default:
		if !u.isConstant(x) {
			u.replace(x.Pos(), x.End(), "!("+u.file.text(x)+")")
		}
	}
}

func (u *unit) binary(n *ast.BinaryExpr) {
	u.operator(n.OpPos, n.Op, negated)
	u.operator(n.OpPos, n.Op, bounded)
	u.operator(n.OpPos, n.Op, swapped)
	if n.Op == token.LAND || n.Op == token.LOR {
		u.condition(n.X)
		u.condition(n.Y)
	}
}

func (u *unit) operator(at token.Pos, op token.Token, replacements map[token.Token]string) {
	if other := replacements[op]; other != "" {
		u.replace(at, at+token.Pos(len(op.String())), other)
	}
}

// returned replaces errors, pointers and similar results with nil, and negates
// booleans.
func (u *unit) returned(n *ast.ReturnStmt) {
	if last := len(n.Results) - 1; last > 0 && u.isFailure(n.Results[last]) {
		for _, x := range n.Results[:last] {
			u.unread[x] = true
		}
	}
	for _, x := range n.Results {
		t := u.file.info.TypeOf(x)
		switch b := t.Underlying().(type) {
		case *types.Basic:
			if b.Info()&types.IsBoolean != 0 {
				u.condition(x)
			}
		case *types.Pointer, *types.Interface, *types.Slice, *types.Map, *types.Signature:
			if !u.file.info.Types[x].IsNil() {
				u.replace(x.Pos(), x.End(), "nil")
			}
		}
	}
}

// isFailure reports whether x, the last result, is an error or false, so that
// the other results are not read.
func (u *unit) isFailure(x ast.Expr) bool {
	t, value := u.file.info.TypeOf(x), u.file.info.Types[x]
	isError := types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface)) //nolint:forcetypeassert // error is an interface
	isRefusal := strings.HasSuffix(t.String(), ".Refusal")
	return (isError || isRefusal) && !value.IsNil() || value.Value != nil && value.Value.String() == "false"
}

func (u *unit) isConstant(n ast.Expr) bool { return u.file.info.Types[n].Value != nil }

// constant changes a literal or a named constant. It skips strings with spaces,
// because tests need not check messages.
func (u *unit) constant(n ast.Expr) {
	value := u.file.info.Types[n].Value
	if value == nil || u.unread[n] {
		return
	}
	text := u.file.text(n)
	switch value.Kind() {
	case constant.Bool:
		u.replace(n.Pos(), n.End(), strconv.FormatBool(!constant.BoolVal(value)))
	case constant.Int, constant.Float:
		change := " + 1)"
		if types.TypeString(u.file.info.TypeOf(n), nil) == "time.Duration" && constant.Sign(value) != 0 {
			change = " * 2)"
		}
		u.replace(n.Pos(), n.End(), "("+text+change)
	case constant.String:
		if s := constant.StringVal(value); s != "" && s != "." && !strings.Contains(s, " ") {
			u.replace(n.Pos(), n.End(), fmt.Sprintf("(%s + %q)", text, "?"))
		}
	default:
	}
}

func (u *unit) replace(start, end token.Pos, text string) {
	m := &mutant{unit: u, start: u.file.offset(start), end: u.file.offset(end), text: text}
	for _, other := range u.mutants {
		if other.start == m.start && other.end == m.end && other.text == m.text {
			return
		}
	}
	u.mutants = append(u.mutants, m)
}
