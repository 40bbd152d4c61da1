// Package untested has a mutant and no test.
package untested

// Adult says whether an age is enough.
func Adult(age int) bool { return age >= 18 }
