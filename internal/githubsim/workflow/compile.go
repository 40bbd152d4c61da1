package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
)

// githubProperties are the members of the github context that the stand-in knows. Any other is refused: GitHub would put an
// empty text in its place, and a workflow that quietly reads nothing proves nothing.
var githubProperties = []string{
	"action", "actor", "api_url", "base_ref", "event_name", "graphql_url", "head_ref", "job", "ref", "ref_name", "ref_type",
	"repository", "repository_id", "repository_owner", "run_attempt", "run_id", "run_number", "server_url", "sha",
	"triggering_actor", "workflow", "workflow_ref", "workflow_sha", "workspace",
}

// template compiles the expressions in s. allowed names the contexts that are there at this place of the file.
func (p *parser) template(s *actionlint.String, where string, allowed ...string) expr.Template {
	var out expr.Template
	rest, offset := s.Value, 0
	for {
		i := strings.Index(rest, "${{")
		if i < 0 {
			break
		}
		if i > 0 {
			out = append(out, expr.Part{Text: rest[:i]})
		}
		pos := placeIn(s, offset+i)
		lexer := actionlint.NewExprLexer(rest[i+3:])
		tree, err := actionlint.NewExprParser().Parse(lexer)
		if err != nil {
			p.refuse(pos, "expression in "+where, err.Message)
			return expr.Literal(s.Value)
		}
		node, what := compile(tree, allowed)
		if what != "" {
			p.refuse(pos, what, "in "+where)
			return expr.Literal(s.Value)
		}
		out = append(out, expr.Part{Expr: &node})
		end := i + 3 + lexer.Offset()
		rest, offset = rest[end:], offset+end
	}
	if rest != "" || len(out) == 0 {
		out = append(out, expr.Part{Text: rest})
	}
	return out
}

// placeIn is the position of a byte of s in the file: exact on the first line of a plain or quoted text, the start of the
// text for a block, whose own indentation the parser does not keep.
func placeIn(s *actionlint.String, offset int) *actionlint.Pos {
	if strings.Contains(s.Value, "\n") {
		return s.Pos
	}
	col := s.Pos.Col + offset
	if s.Quoted {
		col++
	}
	return &actionlint.Pos{Line: s.Pos.Line, Col: col}
}

// compile turns actionlint's tree into ours; what names the first construct that is not supported.
func compile(n actionlint.ExprNode, allowed []string) (node expr.Node, what string) {
	switch n := n.(type) {
	case *actionlint.NullNode:
		return expr.Node{Op: expr.OpLiteral}, ""
	case *actionlint.BoolNode:
		return expr.Node{Op: expr.OpLiteral, Value: n.Value}, ""
	case *actionlint.IntNode:
		return expr.Node{Op: expr.OpLiteral, Value: float64(n.Value)}, ""
	case *actionlint.FloatNode:
		return expr.Node{Op: expr.OpLiteral, Value: n.Value}, ""
	case *actionlint.StringNode:
		return expr.Node{Op: expr.OpLiteral, Value: n.Value}, ""
	case *actionlint.VariableNode:
		if !slices.Contains(allowed, n.Name) {
			return node, fmt.Sprintf("context %q", n.Name)
		}
		return expr.Node{Op: expr.OpContext, Name: n.Name}, ""
	case *actionlint.ObjectDerefNode:
		if what := unknownProperty(n.Receiver, n.Property); what != "" {
			return node, what
		}
		key := expr.Node{Op: expr.OpLiteral, Value: n.Property}
		return join(expr.OpIndex, allowed, []expr.Node{key}, n.Receiver)
	case *actionlint.IndexAccessNode:
		if key, ok := n.Index.(*actionlint.StringNode); ok {
			if what := unknownProperty(n.Operand, strings.ToLower(key.Value)); what != "" {
				return node, what
			}
		}
		return join(expr.OpIndex, allowed, nil, n.Operand, n.Index)
	case *actionlint.NotOpNode:
		return join(expr.OpNot, allowed, nil, n.Operand)
	case *actionlint.CompareOpNode:
		return join(expr.Op(n.Kind.String()), allowed, nil, n.Left, n.Right)
	case *actionlint.LogicalOpNode:
		return join(expr.Op(n.Kind.String()), allowed, nil, n.Left, n.Right)
	case *actionlint.FuncCallNode:
		if name := strings.ToLower(n.Callee); slices.Contains(allowed, statusFunctions) && slices.Contains(statusNames, name) && len(n.Args) == 0 {
			return expr.StatusFunction(name), ""
		}
		return node, fmt.Sprintf("function %q", n.Callee+"()")
	case *actionlint.ArrayDerefNode:
		return node, `object filter ".*"`
	}
	return node, fmt.Sprintf("expression %T", n)
}

// statusFunctions stands among the allowed contexts where the functions of statusNames may be called.
const statusFunctions = "status functions"

var statusNames = []string{"always", "cancelled", "failure", "success"}

// condition compiles an if: an expression, in ${{ }} or without. One that calls no status function is met only while the job
// succeeds (actions/runner 2.336, src/Sdk/WorkflowParser/Conversion/WorkflowTemplateConverter.cs, ConvertToIfCondition).
func (p *parser) condition(s *actionlint.String, where string, allowed ...string) *expr.Node {
	source := strings.TrimSpace(s.Value)
	if inner, ok := strings.CutPrefix(source, "${{"); ok && strings.HasSuffix(inner, "}}") {
		source = strings.TrimSuffix(inner, "}}")
	}
	if strings.Contains(source, "${{") {
		p.refuse(s.Pos, "text around an expression", "in "+where)
		return nil
	}
	tree, err := actionlint.NewExprParser().Parse(actionlint.NewExprLexer(source + "}}"))
	if err != nil {
		p.refuse(s.Pos, "expression in "+where, err.Message)
		return nil
	}
	node, what := compile(tree, append(allowed, statusFunctions))
	if what != "" {
		p.refuse(s.Pos, what, "in "+where)
		return nil
	}
	if !node.HasStatusFunction() {
		node = expr.Node{Op: expr.OpAnd, Args: []expr.Node{expr.StatusFunction("success"), node}}
	}
	return &node
}

func join(op expr.Op, allowed []string, last []expr.Node, args ...actionlint.ExprNode) (expr.Node, string) {
	out := expr.Node{Op: op}
	for _, a := range args {
		n, what := compile(a, allowed)
		if what != "" {
			return out, what
		}
		out.Args = append(out.Args, n)
	}
	out.Args = append(out.Args, last...)
	return out, ""
}

func unknownProperty(of actionlint.ExprNode, name string) string {
	v, ok := of.(*actionlint.VariableNode)
	if !ok || v.Name != "github" || slices.Contains(githubProperties, name) {
		return ""
	}
	return fmt.Sprintf("property %q", "github."+name)
}
