package testrun

import "flag"

// together is how many tests run at the same time: tests of processes wait far more
// than they compute, so that as many fit on a small machine.
const together = "9"

// Together makes the parallel tests of a binary with processes run together. TestMain
// calls it. A -test.parallel that was given counts instead.
func Together() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", together); err != nil {
			panic(err) // it is a flag of every test binary
		}
	}
}
