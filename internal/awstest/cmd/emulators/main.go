// Command emulators runs the emulators of AWS for several test binaries. It
// prints the variables that hand them over, one in a line, then an empty line,
// and ends, with the emulators, when its standard input does.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/remuda-ci/remuda/internal/awstest"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "emulators:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	environ, stop, err := awstest.Start()
	if err != nil {
		return err
	}
	defer stop()
	for _, variable := range append(environ, "") {
		if _, err := fmt.Fprintln(out, variable); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
