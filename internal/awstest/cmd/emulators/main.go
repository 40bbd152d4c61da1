// Command emulators runs the emulators of AWS for several test binaries: see
// awstest.Start. Its argument is the directory that hands them over. It ends, with the
// emulators, when its standard input does.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/remuda-ci/remuda/internal/awstest"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "emulators:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader) error {
	if len(args) != 1 {
		return errors.New("want one argument, the directory that hands over the emulators")
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end too
		close(ended)
	}()
	started := make(chan error, 1)
	go func() { started <- awstest.Start(args[0]) }()
	select {
	case err := <-started:
		if err != nil {
			return err
		}
		<-ended
	case <-ended: // while they start
	}
	return nil // the kernel ends them with this process
}
