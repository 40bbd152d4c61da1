package mutation

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// opposites, boundaries and partners are what an operator becomes.
var (
	opposites = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	}
	boundaries = map[token.Token]struct {
		call string
		to   token.Token
	}{
		token.LSS: {"Less", token.LEQ}, token.LEQ: {"LessOrEqual", token.LSS}, token.GTR: {"Greater", token.GEQ}, token.GEQ: {"GreaterOrEqual", token.GTR},
	}
	partners = map[token.Token]struct {
		call string
		to   token.Token
	}{
		token.ADD: {"Sum", token.SUB}, token.SUB: {"Difference", token.ADD},
		token.MUL: {"Product", token.QUO}, token.QUO: {"Quotient", token.MUL}, token.REM: {"Remainder", token.MUL},
	}
	assigning = map[token.Token]token.Token{
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN, token.REM_ASSIGN: token.MUL_ASSIGN,
	}
	stepping = map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}
)

// mutator writes the mutants of a file into its text. Lines stay where they are.
type mutator struct {
	source
	edits
	relative string // the path below the root of the module
	next     int    // the number of the next mutant
	mutants  []Mutant
	function string
	// bools are the parts of conditions and of what is returned, which are negated; units are factors that are no lengths of their own.
	bools, units map[ast.Expr]bool
	kept         map[*ast.BranchStmt]bool
}

// mutate finds the mutants of a file, which get numbers from first on, and the text with all of them.
func mutate(s source, relative string, first int) ([]Mutant, []byte) {
	m := &mutator{source: s, relative: relative, next: first, bools: map[ast.Expr]bool{}, units: map[ast.Expr]bool{}, kept: map[*ast.BranchStmt]bool{}}
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			m.function = functionName(f)
		} else {
			m.function = ""
		}
		ast.Inspect(decl, m.visit)
	}
	return m.mutants, m.apply(s.text)
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return types.ExprString(of) + "." + f.Name.Name
}

// visit says whether there may be mutants in a node, and writes those of the node itself.
func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.statements(n.Body)
	case *ast.CommClause:
		m.statements(n.Body)
	case *ast.IfStmt:
		m.condition(n.Cond)
	case *ast.ForStmt:
		m.condition(n.Cond)
		if n.Cond == nil {
			m.endless(n.Body)
		}
	case *ast.ReturnStmt:
		for _, result := range n.Results {
			m.condition(result)
		}
	case ast.Expr:
		return m.expression(n)
	}
	return true
}

// endless keeps each continue of a loop without an end: what follows such a loop need not compile.
func (m *mutator) endless(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return false
		case *ast.BranchStmt:
			m.kept[n] = true
		}
		return true
	})
}

// condition marks the parts of a bool that are not compared, so that each is negated.
func (m *mutator) condition(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case nil:
	case *ast.UnaryExpr:
		m.condition(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			m.condition(e.X)
			m.condition(e.Y)
		}
	default:
		if m.isBool(e) {
			m.bools[e] = true
		}
	}
}

func (m *mutator) expression(e ast.Expr) bool {
	if m.bools[e] {
		m.around(e, fmt.Sprintf("(mutant_.On(%d) != (", m.add(Negation, e, m.negated(e))), "))")
	}
	if value := m.info.Types[e]; value.Value != nil {
		m.constant(e, value)
		return false
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		return !m.isText(e)
	case *ast.BinaryExpr:
		m.binary(e)
	}
	return true
}

// constant doubles a duration. A literal is a number that a duration is multiplied or compared with.
func (m *mutator) constant(e ast.Expr, value types.TypeAndValue) {
	if _, literal := e.(*ast.BasicLit); literal || m.units[e] || value.Type.String() != "time.Duration" || value.Value.ExactString() == "0" {
		return
	}
	m.around(e, fmt.Sprintf("mutant_.Duration(%d, ", m.add(Length, e, "2*"+m.parenthesized(e))), ")")
}

func (m *mutator) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		m.logic(e)
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		m.comparison(e)
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		m.arithmetic(e)
	}
}

// logic: a && b is !(!a || !b), so three comparisons with the same bool make it a || b, and b is still not read when a decides.
func (m *mutator) logic(e *ast.BinaryExpr) {
	if !m.isBool(e) || !m.isBool(e.X) || !m.isBool(e.Y) {
		return
	}
	other := map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[e.Op]
	differs := fmt.Sprintf(") != mutant_.On(%d)", m.add(Logic, e, m.with(e, other)))
	m.around(e.X, "(((", differs)
	m.around(e.Y, "(", differs+differs+")")
}

func (m *mutator) comparison(e *ast.BinaryExpr) {
	if !m.isBool(e) {
		return
	}
	open := fmt.Sprintf("(mutant_.On(%d) != ", m.add(Negation, e, m.with(e, opposites[e.Op])))
	boundary, ok := boundaries[e.Op]
	if !ok {
		m.around(e, open+"(", "))")
		return
	}
	m.around(e, open+fmt.Sprintf("mutant_.%s(%d, ", boundary.call, m.add(Boundary, e, m.with(e, boundary.to))), "))")
	m.replace(m.offset(e.OpPos), len(e.Op.String()), ",")
}

func (m *mutator) arithmetic(e *ast.BinaryExpr) {
	if of, ok := m.info.TypeOf(e).Underlying().(*types.Basic); !ok || of.Info()&(types.IsInteger|types.IsFloat) == 0 {
		return
	}
	partner := partners[e.Op]
	m.around(e, fmt.Sprintf("mutant_.%s(%d, ", partner.call, m.add(Arithmetic, e, m.with(e, partner.to))), ")")
	m.replace(m.offset(e.OpPos), len(e.Op.String()), ",")
	for _, factor := range []ast.Expr{e.X, e.Y} {
		if unit, ok := factor.(*ast.SelectorExpr); ok && (e.Op == token.MUL || e.Op == token.QUO) {
			m.units[unit] = true
		}
	}
}

// statements writes the mutants of whole statements. Those of an if, a for and the like are the statements in them.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && !m.isText(call) && !m.isBuiltin(call, "panic") {
				m.remove(s)
			}
		case *ast.AssignStmt:
			m.assignment(s)
		case *ast.IncDecStmt:
			m.instead(s, Arithmetic, m.code(s.X)+stepping[s.Tok].String())
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE && s.Label == nil && !m.kept[s] {
				m.instead(s, Jump, "break")
			}
		}
	}
}

func (m *mutator) assignment(s *ast.AssignStmt) {
	blank := func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && name.Name == "_"
	}
	if s.Tok == token.DEFINE || !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return !blank(e) }) {
		return
	}
	m.remove(s)
	to, ok := assigning[s.Tok]
	if !ok {
		return
	}
	if of, ok := m.info.TypeOf(s.Lhs[0]).Underlying().(*types.Basic); ok && of.Info()&types.IsNumeric != 0 {
		m.instead(s, Arithmetic, m.code(s.Lhs[0])+" "+to.String()+" "+m.code(s.Rhs[0]))
	}
}

func (m *mutator) remove(s ast.Stmt) {
	m.around(s, fmt.Sprintf("if !mutant_.On(%d) { ", m.add(Removal, s, "removed")), " }")
}

// instead does another statement when the mutant is on.
func (m *mutator) instead(s ast.Stmt, kind Kind, other string) {
	m.around(s, fmt.Sprintf("if mutant_.On(%d) { %s } else { ", m.add(kind, s, other), other), " }")
}

// add notes a mutant and returns its number.
func (m *mutator) add(kind Kind, n ast.Node, after string) int {
	id := m.next
	m.next++
	m.mutants = append(m.mutants, Mutant{
		ID: id, Package: m.pkg, File: m.relative, Line: m.fset.Position(n.Pos()).Line, Func: m.function, Kind: kind,
		Before: oneLine(m.code(n)), After: oneLine(after),
	})
	return id
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

// code is the code of a node as it is without mutants.
func (m *mutator) code(n ast.Node) string { return string(m.text[m.offset(n.Pos()):m.offset(n.End())]) }

// with is the code of an expression with another operator.
func (m *mutator) with(e *ast.BinaryExpr, op token.Token) string {
	return m.code(e.X) + " " + op.String() + " " + m.code(e.Y)
}

func (m *mutator) parenthesized(e ast.Expr) string {
	if _, ok := e.(*ast.BinaryExpr); ok {
		return "(" + m.code(e) + ")"
	}
	return m.code(e)
}

func (m *mutator) negated(e ast.Expr) string {
	switch code := m.code(e); code {
	case "true":
		return "false"
	case "false":
		return "true"
	default:
		return "!" + code
	}
}

func (m *mutator) around(n ast.Node, open, end string) {
	m.edits.around(m.offset(n.Pos()), m.offset(n.End()), open, end)
}

func (m *mutator) isBool(e ast.Expr) bool {
	of, ok := m.info.TypeOf(e).(*types.Basic)
	return ok && of.Info()&types.IsBoolean != 0
}

func (m *mutator) isBuiltin(call *ast.CallExpr, name string) bool {
	f, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	builtin, ok := m.info.Uses[f].(*types.Builtin)
	return ok && builtin.Name() == name
}

// isText says whether a call only makes text for people: a line of a log or the text of an error.
func (m *mutator) isText(call *ast.CallExpr) bool {
	f, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	called, ok := m.info.Uses[f.Sel].(*types.Func)
	if !ok || called.Pkg() == nil {
		return false
	}
	switch called.Pkg().Path() {
	case "log/slog", "github.com/hashicorp/go-hclog":
		return true
	case "fmt":
		return called.Name() == "Errorf"
	case "errors":
		return called.Name() == "New"
	}
	return false
}

// oneLine is code without its line breaks, cut where it gets long.
func oneLine(code string) string {
	const most = 120
	line := []rune(strings.Join(strings.Fields(code), " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}
