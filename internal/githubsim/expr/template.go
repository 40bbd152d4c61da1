package expr

import "strings"

// Part is one piece of a Template: text as it stands, or an expression in its place.
type Part struct {
	Text string `json:"text,omitempty"`
	Expr *Node  `json:"expr,omitempty"`
}

// Template is text with ${{ expressions }} in it.
type Template []Part

// Literal is the template of a text without expressions.
func Literal(s string) Template { return Template{{Text: s}} }

// Render returns the text with every expression replaced by the text of its value.
func (t Template) Render(c Contexts) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.Expr == nil {
			b.WriteString(p.Text)
			continue
		}
		v, err := p.Expr.Eval(c)
		if err != nil {
			return "", err
		}
		b.WriteString(Text(v))
	}
	return b.String(), nil
}

// Value is Render, but a template that is one expression and nothing else keeps the kind of its value.
func (t Template) Value(c Contexts) (any, error) {
	if len(t) == 1 && t[0].Expr != nil {
		return t[0].Expr.Eval(c)
	}
	return t.Render(c)
}
