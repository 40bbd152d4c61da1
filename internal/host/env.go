package host

import (
	"maps"
	"slices"
	"strings"
)

// environment is the environment of runner and pre-runner script. Nothing of the agent's
// own environment is in it except, without systemd, PATH.
func (h *Host) environment() []string {
	env := []string{
		InstanceIDVariable + "=" + h.o.InstanceID,
		"LANG=C.UTF-8",
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.path(hookStarted),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.path(hookCompleted),
	}
	env = append(env, h.layout.environment()...)
	for _, name := range slices.Sorted(maps.Keys(h.o.Env)) {
		env = append(env, name+"="+h.o.Env[name])
	}
	return env
}

// lastOfEach keeps the last value of each variable, as exec does: systemd refuses a unit
// with a variable twice.
func lastOfEach(env []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, variable := range slices.Backward(env) {
		if name, _, _ := strings.Cut(variable, "="); !seen[name] {
			seen[name] = true
			kept = append(kept, variable)
		}
	}
	slices.Reverse(kept)
	return kept
}

// usualPath is the PATH of tasks where none is given.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
