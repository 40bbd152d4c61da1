// Command standin-runner is both programs of the stand-in runner, by the name it is called with: bin/Runner.Listener and
// bin/Runner.Worker. runner.LayOut puts it in its place.
package main

import (
	"os"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

func main() {
	os.Exit(runner.Main(os.Args, os.Environ, os.Stdin, os.Stdout, os.Stderr))
}
