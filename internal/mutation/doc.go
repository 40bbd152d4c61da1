// Package mutation measures how well tests test. It changes the code in one small place, a mutant, and runs the tests that reach the place. A
// mutant that fails no test has survived: the tests miss something, or the change makes no difference.
//
// All mutants of a package are built into one test binary, and the environment chooses the one that is on. So a mutant costs a run of a few tests
// and no build. It is not a test of the whole: only tests of packages that are named count.
package mutation
