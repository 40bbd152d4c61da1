// Package host is the machine that the agent works on: the runner, its configuration, the pre-runner script and the
// clean-up. They all outlive the agent.
//
// Each of them is a task. processes starts tasks and finds them again, as units of systemd (Options.Systemd) or, in the
// embedded default, in process groups of the agent's own user. layout says what is where on the host for either.
//
// Below the host's directory are
//
//	runner/   the runner: config.sh, bin/Runner.Listener; renewed by Clean
//	work/     of the jobs; renewed by Clean
//	hooks/    the job hooks, written by the agent
//	job/      what hooks and agent tell each other; see hooks
//	state/    agent.json, the agent's memory
//	state/tasks/   what was started and how it ended; see task
//	home/ tmp/ logs/   where there are no units: with them jobs have the home of
//	          their user and the machine's /tmp, and logs are in the journal
//
// Everything that Observe returns comes from there, from systemd and from /proc, so an agent that was killed finds all of
// it again.
package host
