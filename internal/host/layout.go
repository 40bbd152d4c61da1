package host

import "context"

// layout is what is where on a host, who owns it, and how it is cleaned between runs.
type layout interface {
	// setUp makes what must exist before anything can run, as far as the agent has the right to.
	setUp() error
	// environment returns the variables that tasks get because of the way they run.
	environment() []string
	// registrationDir is where the registration of the runner is kept, and removeCommand the command that removes it.
	registrationDir() string
	removeCommand() command
	// protectCredentials makes sure that no other user can read the secrets of a JIT configuration, which the runner
	// writes to files.
	protectCredentials() error
	// prepareCommand is what runs once in each boot before anything else; nil for nothing.
	prepareCommand() *command
	// startClean starts the clean-up, which ends with Host.CleanNow.
	startClean(ctx context.Context, t task, r startRecord) error
	// clean ends what the last run left running and renews what it wrote to.
	clean(ctx context.Context) error
	// verify checks the result of clean, as if something else had done it.
	verify(ctx context.Context) error
	// makeReady returns a clean host to the state before its first run.
	makeReady(ctx context.Context) error
}
