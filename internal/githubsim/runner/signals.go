package runner

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Variables of the environment of listener and worker, for tests of what stops a runner. Both are durations such as "2s".
const (
	// exitLimitVariable replaces exitLimit.
	exitLimitVariable = "STANDIN_EXIT_LIMIT"
	// stopTimeVariable is what each of the two takes to end once it is stopping: it is then that a worker hands in its result and
	// the listener closes its session, over a network that the stand-in does not have. The default is none.
	stopTimeVariable = "STANDIN_STOP_TIME"
)

// exitLimit is how long listener and worker take at most to end on SIGTERM (actions/runner 2.336, src/Runner.Common/Constants.cs:89,
// ExitOnUnloadTimeout; src/Runner.Listener/Runner.cs:350; src/Runner.Worker/Worker.cs:221). SIGINT has no such limit.
const exitLimit = 30 * time.Second

// exitOnSIGTERM returns a channel that is closed at the first SIGTERM. The process then has exitLimit to end by itself.
func exitOnSIGTERM() <-chan struct{} {
	signals, terminated := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		time.AfterFunc(durationOf(os.Environ(), exitLimitVariable, exitLimit), func() { os.Exit(exitTerminatedBySignal) })
		close(terminated)
	}()
	return terminated
}

// exitTerminatedBySignal is the exit code that .NET gives a process that SIGTERM ended.
const exitTerminatedBySignal = 128 + int(syscall.SIGTERM)

// durationOf reads a duration from an environment.
func durationOf(environ []string, name string, otherwise time.Duration) time.Duration {
	for _, kv := range environ {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			if d, err := time.ParseDuration(value); err == nil {
				otherwise = d // the last of a name counts
			}
		}
	}
	return otherwise
}
