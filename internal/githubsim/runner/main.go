// Package runner is the stand-in runner: it is laid out, configured, started and stopped as actions/runner is, prints the lines
// and ends with the exit codes that one documents, and runs the jobs of the GitHub stand-in.
package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Version is what a runner says it is unless its manifest says another version.
const Version = "2.336.0"

// Exit codes of the listener, as in actions/runner (2.336, src/Runner.Common/Constants.cs:150-163).
const (
	exitSuccess         = 0
	exitTerminatedError = 1 // no use in trying again
	exitRetryableError  = 2
	exitUpdating        = 3 // the files are being replaced by _update.sh
	exitUpdatingRunOnce = 4
	exitSessionConflict = 5 // another listener speaks for this runner
	exitDeprecated      = 7 // the version is refused, if deprecatedVariable is set; else 1
)

// deprecatedVariable asks for an exit code of its own for a refused version (src/Runner.Listener/Program.cs:142-170).
const deprecatedVariable = "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"

// message is an error whose text is that of actions/runner.
type message string

func (m message) Error() string { return string(m) }

// Main is the whole program: Runner.Worker if it is called by that name, else Runner.Listener. It returns the exit code.
func Main(args []string, environ func() []string, in io.Reader, out, errOut io.Writer) int {
	root, err := rootOf(args[0])
	if err != nil {
		fmt.Fprintln(errOut, err)
		return exitTerminatedError
	}
	if filepath.Base(args[0]) == "Runner.Worker" {
		openDiagnostics(root, "Worker")
		return work(root, environ(), in, errOut)
	}
	if slices.Contains(args[1:], "--version") {
		fmt.Fprintln(out, versionOf(root))
		return exitSuccess
	}
	openDiagnostics(root, "Runner")
	inputs, unknown := readInputs(args[1:], environ())
	if len(unknown) > 0 { // src/Runner.Listener/Program.cs:106-119
		fmt.Fprintf(errOut, "Unrecognized command-line input arguments for command %s: '%s'. For usage refer to: .\\config.cmd --help or ./config.sh --help\n",
			inputs.command, strings.Join(unknown, ", "))
	}
	inputs.values["version"] = versionOf(root)
	switch inputs.command {
	case "configure":
		err = configure(root, inputs, out, errOut)
	case "remove":
		err = unconfigure(root, inputs, out, errOut)
	case "", "run":
		return listen(root, inputs, out, errOut)
	default:
		err = message("Unrecognized command: " + inputs.command)
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return exitTerminatedError
	}
	return exitSuccess
}

// openDiagnostics begins a file below _diag, as each program of the runner does (src/Runner.Common/HostTraceListener.cs:12-60). That it
// cannot is no error.
func openDiagnostics(root, program string) {
	dir := filepath.Join(root, "_diag")
	if os.MkdirAll(dir, 0o755) == nil {
		name := program + "_" + time.Now().UTC().Format("20060102-150405") + "-utc.log"
		_ = os.WriteFile(filepath.Join(dir, name), []byte(now()+" INFO HostContext] Version: "+versionOf(root)+"\n"), 0o644)
	}
}

// rootOf is the runner's directory: the one above bin, by the name the program was called with, so that links do not matter.
func rootOf(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("find own program: %w", err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	root := filepath.Dir(filepath.Dir(path))
	if _, err := os.Stat(filepath.Join(root, "bin", "Runner.Worker")); err != nil {
		return "", fmt.Errorf("%s is not in the bin directory of a runner: %w", program, err)
	}
	return root, nil
}
