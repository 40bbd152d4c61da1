package runner

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// inputPrefix begins the environment variables that stand for options, as in actions/runner. They are taken out of the
// environment once read, so that no job sees them.
const inputPrefix = "ACTIONS_RUNNER_INPUT_"

var (
	valueOptions = []string{"url", "token", "name", "labels", "work", "runnergroup", "jitconfig"}
	// hosted is none of actions/runner's: it makes the stand-in for a machine of GitHub's own.
	flagOptions = []string{"unattended", "replace", "ephemeral", "disableupdate", "no-default-labels", "local", "hosted"}
)

// inputs are the command and the options of one call.
type inputs struct {
	command string
	values  map[string]string
	flags   map[string]bool
}

// readInputs takes options from the command line and, where it gives none, from the environment.
func readInputs(args, environ []string) (inputs, error) {
	in := inputs{values: map[string]string{}, flags: map[string]bool{}}
	in.fromEnvironment(environ)
	for i := 0; i < len(args); i++ {
		name, isOption := strings.CutPrefix(args[i], "--")
		name = strings.ToLower(name)
		switch {
		case !isOption && in.command == "":
			in.command = args[i]
		case isOption && slices.Contains(flagOptions, name):
			in.flags[name] = true
		case isOption && slices.Contains(valueOptions, name):
			if i++; i == len(args) {
				return in, fmt.Errorf("option --%s has no value", name)
			}
			in.values[name] = args[i]
		default:
			return in, message("Unrecognized command-line input arguments: '" + name + "'. For usage refer to: ./config.sh --help")
		}
	}
	return in, nil
}

func (in *inputs) fromEnvironment(environ []string) {
	for _, kv := range environ {
		key, value, _ := strings.Cut(kv, "=")
		name, found := strings.CutPrefix(strings.ToUpper(key), inputPrefix)
		if !found {
			continue
		}
		os.Unsetenv(key)
		name = strings.ToLower(name)
		if slices.Contains(valueOptions, name) && value != "" {
			in.values[name] = value
		}
		if slices.Contains(flagOptions, name) {
			in.flags[name] = strings.EqualFold(value, "true") || value == "1"
		}
	}
}

// list splits a comma-separated option.
func (in *inputs) list(name string) []string {
	var out []string
	for _, s := range strings.Split(in.values[name], ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
