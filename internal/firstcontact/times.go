package firstcontact

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
)

// The bounds that the project's own limits set.
const (
	registerLimit = 60 * time.Second // internal/host/register.go: configureLimit
	connectLimit  = 60 * time.Second // internal/agent/intervals.go: connectLimit
	sessionLimit  = 4 * time.Minute  // actions/runner 2.336, src/Runner.Listener/BrokerMessageListener.cs:36-37
	busyLimit     = time.Minute      // internal/githubsim/state/times.go: BusyLag
	offlineLimit  = 2 * time.Minute  // internal/githubsim/state/times.go: Offline
)

var timesCheck = check{
	name: "times",
	does: "measures config.sh, the listener, the session of one that was killed, and how late the flags follow",
	assumptions: []findings.Assumption{
		{
			Name:     "config-time",
			Text:     "config.sh takes less than 60 s. The demo models 3 s.",
			ReliedOn: "internal/host/register.go: configureLimit; docs/testing.md: times of the stand-in",
		},
		{
			Name:     "listen-time",
			Text:     "A listener listens less than 60 s after its start. The demo models 2 s and its calls.",
			ReliedOn: "internal/agent/intervals.go: connectLimit; docs/testing.md: times of the stand-in",
		},
		{
			Name:     "dead-session",
			Text:     "After SIGKILL of a listener the next one gets the session within the 4 minutes for which it tries.",
			ReliedOn: "internal/agent/intervals.go: conflictWait",
		},
		{
			Name:     "busy-lag",
			Text:     "The busy flag follows the begin and the end of a job within a minute.",
			ReliedOn: "internal/policy/scaledown.go: a host that GitHub calls idle may have a job",
		},
		{
			Name:     "offline-lag",
			Text:     "A runner whose listener was killed is shown as offline within 2 minutes.",
			ReliedOn: "internal/policy/scaledown.go: a runner that is offline and busy",
		},
	},
	run: checkTimes,
}

func checkTimes(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	label := s.name("label")
	if err := r.register(ctx, label); err != nil {
		return err
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	s.Decide("config-time", slices.Max(s.configured) < registerLimit, "%s", spread(s.configured))
	s.Decide("listen-time", slices.Max(s.listened) < connectLimit, "%s", spread(s.listened))
	if err := busyLag(ctx, s, r, label); err != nil {
		return err
	}
	if l, err = deadSession(ctx, s, l); err != nil || l == nil {
		return err
	}
	l.kill()
	took, offline, err := s.await(ctx, s.Times.Flags, "the runner to be offline", func() (bool, error) {
		got, err := s.gh.runner(ctx, r.id)
		return got.Status == "offline", err
	})
	if err == nil {
		s.Decide("offline-lag", offline && took <= offlineLimit, "%s", after(took, offline))
	}
	return err
}

// spread is the least, the middle and the longest of some times.
func spread(list []time.Duration) string {
	sorted := slices.Sorted(slices.Values(list))
	return fmt.Sprintf("%d took %s to %s, in the median %s", len(sorted), findings.Seconds(sorted[0]), findings.Seconds(sorted[len(sorted)-1]), findings.Seconds(sorted[len(sorted)/2]))
}

func after(took time.Duration, came bool) string {
	if !came {
		return "not within " + findings.Seconds(took)
	}
	return "after " + findings.Seconds(took)
}

// busyLag measures how late the busy flag follows a job.
func busyLag(ctx context.Context, s *session, r *runner, label string) error {
	gate := s.newGate()
	runs, err := s.startJob(ctx, label, gate.step())
	if err != nil {
		return err
	}
	if _, err := s.mustWatch(ctx, "the job's step", gate.passing); err != nil {
		return err
	}
	flag := func(want bool) (time.Duration, bool, error) {
		return s.await(ctx, s.Times.Flags, fmt.Sprintf("the busy flag to be %t", want), func() (bool, error) {
			got, err := s.gh.runner(ctx, r.id)
			return got.Busy == want, err
		})
	}
	up, rose, err := flag(true)
	if err != nil {
		return err
	}
	if err := gate.open(); err != nil {
		return err
	}
	if _, _, err := runs.completed(ctx); err != nil {
		return err
	}
	down, fell, err := flag(false)
	if err == nil {
		s.Decide("busy-lag", rose && fell && up <= busyLimit && down <= busyLimit, "set %s of the first step, cleared %s of the end", after(up, rose), after(down, fell))
	}
	return err
}

// deadSession kills a listener and starts the next one at once. It returns the one that listens; nil: none does.
func deadSession(ctx context.Context, s *session, l *listener) (*listener, error) {
	l.kill()
	begun := time.Now()
	next, err := l.r.start()
	if err != nil {
		return nil, err
	}
	took, came, err := s.watch(ctx, s.Times.Flags, "a session after SIGKILL", func() (bool, error) {
		ended := next.ended()
		_, listens := next.printed(lineListening)
		return listens || ended, nil
	})
	if err != nil {
		return nil, err
	}
	at, listens := next.printed(lineListening)
	switch {
	case listens:
		s.Decide("dead-session", at.Sub(begun) <= sessionLimit+connectLimit, "it listened after %s; met the old session: %t", findings.Seconds(at.Sub(begun)), next.metSession())
		return next, nil
	case came:
		s.Decide("dead-session", false, "it ended after %s with exit code %d and said: %s", findings.Seconds(took), next.code(), lastLines(next.output()))
	default:
		s.Decide("dead-session", false, "it did not listen within %s", findings.Seconds(took))
	}
	return nil, nil
}
