package host

import (
	"maps"
	"os"
	"slices"
)

// environment is what runner and pre-runner script get: nothing of the
// agent's own but where programs are.
func (h *Host) environment() []string {
	env := []string{
		InstanceIDVariable + "=" + h.o.InstanceID,
		"HOME=" + h.path("home"),
		"TMPDIR=" + h.path("tmp"),
		"LANG=C.UTF-8",
		"PATH=" + searchPath(),
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.path(hookStarted),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.path(hookCompleted),
	}
	if os.Geteuid() == 0 {
		// The runner refuses to run as root unless it is told that this is meant.
		env = append(env, "RUNNER_ALLOW_RUNASROOT=1")
	}
	for _, name := range slices.Sorted(maps.Keys(h.o.Env)) {
		env = append(env, name+"="+h.o.Env[name])
	}
	return env
}

func searchPath() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}
