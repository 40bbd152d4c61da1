// Package expr holds the expressions of a workflow file in a form that travels: the stand-in server compiles them, the worker
// evaluates those whose values are known only while a job runs (env, which a step may extend).
//
// The rules of evaluation are those of https://docs.github.com/en/actions/reference/workflows-and-actions/expressions.
package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Op says what a Node does.
type Op string

// The operations of a Node. Of the functions there are those of a job's status; the stand-in refuses all others by name.
const (
	OpLiteral   Op = "literal" // Value
	OpContext   Op = "context" // the context called Name
	OpStatus    Op = "status"  // the status function called Name: always, cancelled, failure or success
	OpIndex     Op = "index"   // Args[0][Args[1]]
	OpNot       Op = "!"
	OpAnd       Op = "&&"
	OpOr        Op = "||"
	OpEqual     Op = "=="
	OpNotEqual  Op = "!="
	OpLess      Op = "<"
	OpLessEq    Op = "<="
	OpGreater   Op = ">"
	OpGreaterEq Op = ">="
)

// Node is one node of an expression tree.
type Node struct {
	Op    Op     `json:"op"`
	Name  string `json:"name,omitempty"`  // of a context or a status function
	Value any    `json:"value,omitempty"` // of a literal: nil, bool, float64 or string
	Args  []Node `json:"args,omitempty"`
}

// Contexts are the named values an expression can see; a value is nil, bool, float64, string, []any or map[string]any, and the
// names in a context's map are matched without regard to case.
type Contexts map[string]any

// Eval returns the value of n. A name that a context does not have is nil, as on GitHub.
func (n Node) Eval(c Contexts) (any, error) {
	switch n.Op {
	case OpLiteral:
		return n.Value, nil
	case OpContext:
		v, ok := c[n.Name]
		if !ok {
			return nil, fmt.Errorf("context %q is not available here", n.Name)
		}
		return v, nil
	case OpStatus:
		return status(n.Name, c)
	case OpAnd, OpOr:
		left, err := n.Args[0].Eval(c)
		if err != nil || truthy(left) == (n.Op == OpOr) {
			return left, err
		}
		return n.Args[1].Eval(c)
	case OpNot:
		v, err := n.Args[0].Eval(c)
		return !truthy(v), err
	}
	left, err := n.Args[0].Eval(c)
	if err != nil {
		return nil, err
	}
	right, err := n.Args[1].Eval(c)
	if err != nil {
		return nil, err
	}
	if n.Op == OpIndex {
		return index(left, right), nil
	}
	return compare(n.Op, left, right), nil
}

// Holds reports whether n, as a condition, is met.
func (n Node) Holds(c Contexts) (bool, error) {
	v, err := n.Eval(c)
	return truthy(v), err
}

// Status is the entry of Contexts that status functions read: success, failure or cancelled.
const Status = "job.status"

// StatusFunction is the call of a status function.
func StatusFunction(name string) Node { return Node{Op: OpStatus, Name: name} }

// HasStatusFunction reports whether n calls a status function. A condition that calls none stands for success() && n.
func (n Node) HasStatusFunction() bool {
	return n.Op == OpStatus || slices.ContainsFunc(n.Args, Node.HasStatusFunction)
}

// status evaluates a status function (actions/runner 2.336, src/Runner.Worker/Expressions). A failed job that is then canceled is
// canceled and no longer failed.
func status(name string, c Contexts) (bool, error) {
	now, ok := c[Status]
	if !ok {
		return false, fmt.Errorf("function %q is not available here", name+"()")
	}
	return name == "always" || name == now, nil
}

// Text turns a value into what GitHub writes in its place.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', 15, 64)
	case string:
		return v
	case []any:
		return "Array"
	default:
		return "Object"
	}
}

func index(of, key any) any {
	switch of := of.(type) {
	case map[string]any:
		name := Text(key)
		if v, ok := of[name]; ok {
			return v
		}
		for k, v := range of {
			if strings.EqualFold(k, name) {
				return v
			}
		}
	case []any:
		if i := number(key); i >= 0 && i < float64(len(of)) {
			return of[int(i)]
		}
	}
	return nil
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && !math.IsNaN(v)
	case string:
		return v != ""
	}
	return true
}

// compare follows GitHub: text without regard to case, values of unlike kinds as numbers, an order only where there is one.
func compare(op Op, a, b any) bool {
	if sa, ok := a.(string); ok {
		if sb, ok := b.(string); ok {
			return holds(op, strings.Compare(strings.ToUpper(sa), strings.ToUpper(sb)))
		}
	}
	x, y := number(a), number(b)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return op == OpNotEqual
	case x < y:
		return holds(op, -1)
	case x > y:
		return holds(op, 1)
	}
	return holds(op, 0)
}

func holds(op Op, sign int) bool {
	switch op {
	case OpEqual:
		return sign == 0
	case OpNotEqual:
		return sign != 0
	case OpLess:
		return sign < 0
	case OpLessEq:
		return sign <= 0
	case OpGreater:
		return sign > 0
	case OpGreaterEq:
		return sign >= 0
	}
	return false
}

// number is GitHub's cast to a number; what has no number is NaN.
func number(v any) float64 {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case float64:
		return v
	case string:
		s := strings.TrimSpace(v)
		if s == "" {
			return 0
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	return math.NaN()
}
