package mutation

import "fmt"

// Kind is what a mutant changes.
type Kind string

// The kinds of mutants.
const (
	Boundary   Kind = "boundary"   // < becomes <=, and so on
	Negation   Kind = "negation"   // a condition or a returned bool becomes its opposite
	Logic      Kind = "logic"      // && becomes ||, and || becomes &&
	Arithmetic Kind = "arithmetic" // + becomes -, * becomes /, ++ becomes --, and the other way round
	Removal    Kind = "removal"    // a call or an assignment is not made
	Jump       Kind = "jump"       // continue becomes break
	Length     Kind = "length"     // a constant duration is doubled
)

// Mutant is one small change of the code.
type Mutant struct {
	// ID is its number in this build of the test binaries.
	ID int `json:"-"`
	// Package is the import path.
	Package string `json:"package"`
	// File is relative to the root of the module.
	File string `json:"file"`
	Line int    `json:"line"`
	// Func is the function it is in, as Name or Type.Name; empty in a variable of the package.
	Func string `json:"func,omitempty"`
	Kind Kind   `json:"kind"`
	// Before and After are the code without it and with it, each in one line. After is "removed" for a removal.
	Before string `json:"before"`
	After  string `json:"after"`
}

// Change is what the mutant changes, and where, without its line: it stays the same while other code of the file changes.
func (m Mutant) Change() string {
	return fmt.Sprintf("%s: %s: %s -> %s", m.File, m.Func, m.Before, m.After)
}
