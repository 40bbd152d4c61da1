package server

import "context"

// asked are tokens, none of them good.
type asked struct{ times int }

func (a *asked) Verify(context.Context, string) (Token, error) {
	a.times++
	return Token{}, &TokenError{Why: "is none"}
}
