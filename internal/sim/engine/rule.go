package engine

import (
	"fmt"
	"runtime/debug"
)

// Rule is a rule of the design that must hold in every life.
type Rule string

// RulePanic is broken by a panic of the code under test. Package rules has the others.
const RulePanic Rule = "panic"

// Protect runs a life until a rule is broken. A panic of the code under test
// breaks one too.
func (e *Engine) Protect(life func()) {
	defer func() {
		if r := recover(); r != nil && e.Violation == nil {
			e.Violation = &Violation{Rule: RulePanic, What: fmt.Sprintf("%v\n%s", r, debug.Stack()), Trace: e.trace.last()}
		}
	}()
	life()
}

// unwind passes a panic on, with the place where it began.
func (e *Engine) unwind(r any) {
	if e.Violation == nil {
		e.Violation = &Violation{Rule: RulePanic, What: fmt.Sprintf("%v\n%s", r, debug.Stack()), Trace: e.trace.last()}
	}
	panic(r)
}

// Broken records that a rule does not hold, and ends the life.
func (e *Engine) Broken(r Rule, format string, args ...any) {
	if e.Violation == nil {
		e.Violation = &Violation{Rule: r, What: fmt.Sprintf(format, args...), Trace: e.trace.last()}
	}
	panic(e.Violation)
}

// Violation is a rule that was broken.
type Violation struct {
	Rule Rule
	What string
	// Trace is the end of what happened before.
	Trace []string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s", v.Rule, v.What) }
