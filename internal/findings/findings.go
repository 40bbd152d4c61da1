// Package findings is what the programs have in common that hold the assumptions of the project against the real thing: the
// verdicts, their table, the lines of progress, and how such a program ends.
package findings

import "slices"

// Verdict is what a run says about an assumption.
type Verdict string

// The verdicts.
const (
	Confirmed Verdict = "confirmed"
	Refuted   Verdict = "refuted"
	Undecided Verdict = "undecided"
)

// Assumption is something that Remuda takes for true.
type Assumption struct {
	// Name is unique among all of a program.
	Name string `json:"name"`
	// Text is the assumption, as a sentence.
	Text string `json:"assumption"`
	// ReliedOn says where the project relies on it: paths from its root, before a colon or the end.
	ReliedOn string `json:"relied_on"`
}

// Finding is an assumption with its verdict.
type Finding struct {
	Check string `json:"check"`
	Assumption
	Verdict Verdict `json:"verdict"`
	// Saw is what happened.
	Saw string `json:"saw"`
}

// RefutedOf returns the findings of a list that are refuted.
func RefutedOf(list []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return f.Verdict != Refuted })
}
