// Command standin-runner is both programs of the stand-in runner, by the name it is called with: bin/Runner.Listener and
// bin/Runner.Worker. runner.LayOut puts it in its place. By its own name it only says its version.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

func main() {
	if filepath.Base(os.Args[0]) == "standin-runner" && len(os.Args) == 2 && (os.Args[1] == "version" || os.Args[1] == "--version") {
		fmt.Println(version())
		return
	}
	os.Exit(runner.Main(os.Args, os.Environ, os.Stdin, os.Stdout, os.Stderr))
}

// version is what the go command stamped. The stand-in knows nothing of the packages of the daemons.
func version() string {
	built := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		built = info.Main.Version
	}
	return fmt.Sprintf("standin-runner %s (%s, %s/%s)", built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
