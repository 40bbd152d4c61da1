package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
)

// maxMatrixJobs is GitHub's limit of jobs that one matrix may make in a run.
const maxMatrixJobs = 256

type matrix struct {
	rows             []row
	include, exclude []combination
	pos              *actionlint.Pos
}

type row struct {
	name   string
	values []value
}

// combination is an ordered set of matrix values.
type combination []assign

type assign struct {
	name  string
	value value
}

// value is a matrix value whose texts may hold expressions over github.
type value func(c expr.Contexts) (any, error)

func (p *parser) matrix(m *actionlint.Matrix, where string) *matrix {
	out := &matrix{pos: m.Pos}
	if m.Expression != nil {
		p.refuse(m.Expression.Pos, "expression", "in place of "+where)
		return out
	}
	var rows []*actionlint.MatrixRow
	for _, name := range slices.Sorted(maps.Keys(m.Rows)) {
		r := m.Rows[name]
		if r.Expression != nil {
			p.refuse(r.Expression.Pos, "expression", "in place of the values of "+where+"."+name)
			continue
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *actionlint.MatrixRow) int { return comparePos(a.Name.Pos, b.Name.Pos) })
	for _, r := range rows {
		out.rows = append(out.rows, row{r.Name.Value, p.values(r.Values, where)})
	}
	out.include = p.combinations(m.Include, where+".include")
	out.exclude = p.combinations(m.Exclude, where+".exclude")
	return out
}

func (p *parser) combinations(cs *actionlint.MatrixCombinations, where string) []combination {
	if cs == nil {
		return nil
	}
	if cs.Expression != nil {
		p.refuse(cs.Expression.Pos, "expression", "in place of "+where)
		return nil
	}
	var out []combination
	for _, c := range cs.Combinations {
		if c.Expression != nil {
			p.refuse(c.Expression.Pos, "expression", "in place of an entry of "+where)
			continue
		}
		assigns := slices.SortedFunc(maps.Values(c.Assigns), func(a, b *actionlint.MatrixAssign) int {
			return comparePos(a.Key.Pos, b.Key.Pos)
		})
		var next combination
		for _, a := range assigns {
			next = append(next, assign{a.Key.Value, p.value(a.Value, where)})
		}
		out = append(out, next)
	}
	return out
}

func comparePos(a, b *actionlint.Pos) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
}

func (p *parser) values(raw []actionlint.RawYAMLValue, where string) []value {
	var out []value
	for _, r := range raw {
		out = append(out, p.value(r, where))
	}
	return out
}

func (p *parser) value(raw actionlint.RawYAMLValue, where string) value {
	switch raw := raw.(type) {
	case *actionlint.RawYAMLArray:
		elems := p.values(raw.Elems, where)
		return func(c expr.Contexts) (any, error) {
			out := []any{}
			for _, e := range elems {
				v, err := e(c)
				if err != nil {
					return nil, err
				}
				out = append(out, v)
			}
			return out, nil
		}
	case *actionlint.RawYAMLObject:
		props := map[string]value{}
		for k, v := range raw.Props {
			props[k] = p.value(v, where)
		}
		return func(c expr.Contexts) (any, error) {
			out := map[string]any{}
			for k, v := range props {
				var err error
				if out[k], err = v(c); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
	}
	return p.scalar(raw, where)
}

func (p *parser) scalar(raw actionlint.RawYAMLValue, where string) value {
	text := ""
	if s, ok := raw.(*actionlint.RawYAMLString); ok {
		text = s.Value
	}
	var fixed any = text
	switch p.kinds[*raw.Pos()] {
	case "!!bool":
		fixed = strings.EqualFold(text, "true")
	case "!!int", "!!float":
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			fixed = f
		} else if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			fixed = float64(i)
		}
	case "!!null":
		fixed = nil
	default:
		if actionlint.ContainsExpression(text) {
			return p.template(&actionlint.String{Value: text, Pos: raw.Pos()}, where, "github").Value
		}
	}
	return func(expr.Contexts) (any, error) { return fixed, nil }
}
