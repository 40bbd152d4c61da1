package firstcontact

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
)

var labelsCheck = check{
	name: "labels",
	does: "queues a job, gives its label to an idle listening runner by PUT, takes the label away, and registers the runner again",
	assumptions: []findings.Assumption{
		{
			Name:     "found-by-name",
			Text:     "The list of runners with a name has the runner of exactly that name, as soon as it listens.",
			ReliedOn: "internal/fleet/hosts/standby.go: the id of a host that listens comes from GitHub",
		},
		{
			Name:     "label-assigns",
			Text:     "A job that waits is assigned to an idle runner that listens, once a PUT of its labels gives the runner the job's label.",
			ReliedOn: "internal/fleet/hosts/standby.go: a claim of a host that listens",
		},
		{
			Name:     "label-removed",
			Text:     "A runner takes no job of a label that a PUT has taken from it, and takes that job once it has the label again.",
			ReliedOn: "docs/first-contact.md: nowhere, since a host that listens is registered again instead",
		},
		{
			Name:     "label-replaced",
			Text:     "A runner that is registered again under its name takes no job of a label of its earlier registration.",
			ReliedOn: "docs/first-contact.md: nowhere, since actions/runner#4225 saw the contrary; internal/fleet: each registration has a name of its own",
		},
	},
	run: checkLabels,
}

func checkLabels(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	hot, spare, third := s.name("hot"), s.name("spare"), s.name("third")
	if err := r.register(ctx, spare); err != nil {
		return err
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	found, err := s.gh.runnersNamed(ctx, r.name)
	if err != nil {
		return err
	}
	s.Decide("found-by-name", len(found) == 1 && found[0].ID == r.id, "runners on the list: %d", len(found))
	if err := checkAssigned(ctx, s, l, hot); err != nil {
		return err
	}
	if err := checkRemovedLabel(ctx, s, r, hot, spare); err != nil {
		return err
	}
	if err := l.stop(ctx); err != nil {
		return err
	}
	return checkReplaced(ctx, s, r, hot, third)
}

// checkAssigned has a job wait, and gives the runner its label.
func checkAssigned(ctx context.Context, s *session, l *listener, hot string) error {
	waits, err := s.startJob(ctx, hot, step{script: "true"})
	if err != nil {
		return err
	}
	switch quiet, err := waits.staysQueued(ctx); {
	case err != nil:
		return err
	case !quiet:
		s.Leave("label-assigns", "the job had a runner before the label was set")
		return nil
	}
	begun := time.Now()
	if err := s.gh.setLabels(ctx, l.r.id, hot); err != nil {
		return fmt.Errorf("set labels: %w", err)
	}
	set := time.Now()
	_, came, err := s.watch(ctx, s.Times.Patience, "the job to be assigned", func() (bool, error) {
		_, ok := l.printed(lineJob)
		return ok, nil
	})
	if err != nil {
		return err
	}
	if !came {
		s.Decide("label-assigns", false, "the job waits still, %s after the label was set", findings.Seconds(time.Since(set)))
		return waits.cancel(ctx)
	}
	at, _ := l.printed(lineJob)
	s.Decide("label-assigns", true, "the PUT took %s, and the runner had the job %s later", findings.Seconds(set.Sub(begun)), findings.Seconds(at.Sub(set)))
	_, _, err = waits.completed(ctx)
	return err
}

// checkRemovedLabel takes the label away and has a job wait for it. That the job runs when the runner has it again shows that the label was
// the only thing in its way.
func checkRemovedLabel(ctx context.Context, s *session, r *runner, hot, spare string) error {
	if err := s.gh.setLabels(ctx, r.id, spare); err != nil {
		return fmt.Errorf("set labels: %w", err)
	}
	waits, err := s.startWaiting(ctx, hot, "label-removed", "a job of the removed label was assigned to the runner")
	if err != nil || waits == nil {
		return err
	}
	if err := s.gh.setLabels(ctx, r.id, hot); err != nil {
		return fmt.Errorf("set labels: %w", err)
	}
	_, took, err := waits.completed(ctx)
	if err == nil {
		s.Decide("label-removed", true, "the job waited for %s, and had run %s after the label was back", findings.Seconds(s.Times.Quiet), findings.Seconds(took))
	}
	return err
}

// checkReplaced registers the runner under its name with another label, while a job waits for the earlier one.
func checkReplaced(ctx context.Context, s *session, r *runner, hot, third string) error {
	if _, code, _, err := r.config(ctx, "", "remove", "--local"); err != nil || code != 0 {
		return fmt.Errorf("config.sh remove --local: exit code %d, %w", code, err)
	}
	if err := r.register(ctx, third); err != nil {
		return err
	}
	if _, err := r.listen(ctx); err != nil {
		return err
	}
	waits, err := s.startWaiting(ctx, hot, "label-replaced", "a job of the label of the earlier registration was assigned to the runner")
	if err != nil || waits == nil {
		return err
	}
	s.Decide("label-replaced", true, "the job waited for %s without a runner", findings.Seconds(s.Times.Quiet))
	return waits.cancel(ctx)
}

// startWaiting starts a job that no runner is to take. If one does, that refutes the assumption, and the result is nil.
func (s *session) startWaiting(ctx context.Context, label, assumption, otherwise string) (*started, error) {
	waits, err := s.startJob(ctx, label, step{script: "true"})
	if err != nil {
		return nil, err
	}
	quiet, err := waits.staysQueued(ctx)
	if err != nil || quiet {
		return waits, err
	}
	s.Decide(assumption, false, "%s", otherwise)
	_, _, err = waits.completed(ctx)
	return nil, err
}
