package runner

import (
	"maps"
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

// validOptions are the options of each command, beside those of all (actions/runner 2.336,
// src/Runner.Listener/CommandSettings.cs:19-74). "unattended" is none of "remove".
var validOptions = map[string][]string{
	"configure": {
		"disableupdate", "ephemeral", "generateserviceconfig", "replace", "runasservice", "unattended", "no-default-labels", "auth", "labels",
		"monitorsocketaddress", "name", "pat", "runnergroup", "token", "url", "username", "windowslogonaccount", "windowslogonpassword", "work",
		"hosted",
	},
	"remove": {"token", "pat", "local"},
	"run":    {"once", "jitconfig", "startuptype"},
}

// inputs are the command and the options of one call.
type inputs struct {
	command string
	values  map[string]string
	flags   map[string]bool
}

// readInputs takes options from the command line and, where it gives none, from the environment. Those of the command line that the
// command does not have are unknown, sorted.
func readInputs(args, environ []string) (in inputs, unknown []string) {
	in = inputs{values: map[string]string{}, flags: map[string]bool{}}
	in.fromEnvironment(environ)
	commands, flags, values := parse(args)
	if len(commands) > 0 {
		in.command = commands[0]
	}
	for name := range flags {
		if slices.Contains(flagOptions, name) {
			in.flags[name] = true
		}
	}
	for name, value := range values {
		if slices.Contains(valueOptions, name) {
			in.values[name] = value
		}
	}
	valid, isCommand := validOptions[in.command]
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(flags)), slices.Sorted(maps.Keys(values))) {
		if isCommand && !slices.Contains(valid, name) {
			unknown = append(unknown, name)
		}
	}
	return in, unknown
}

// parse reads a command line: an option that another option follows, or nothing, is a flag (src/Runner.Common/CommandLineParser.cs:46-125).
func parse(args []string) (commands []string, flags map[string]bool, values map[string]string) {
	flags, values = map[string]bool{}, map[string]string{}
	open, options := "", false
	for _, arg := range args {
		name, isOption := strings.CutPrefix(arg, "--")
		options = options || isOption
		switch {
		case !options:
			commands = append(commands, strings.TrimSpace(arg))
		case isOption && name != "":
			if open != "" {
				flags[open] = true
			}
			open = strings.ToLower(name)
		case open != "" && !strings.HasPrefix(arg, "-"):
			if _, twice := values[open]; !twice {
				values[open] = arg
			}
			open = ""
		}
	}
	if open != "" {
		flags[open] = true
	}
	return commands, flags, values
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
