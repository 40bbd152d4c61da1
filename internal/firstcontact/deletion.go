package firstcontact

import (
	"context"
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/findings"
)

var deletionCheck = check{
	name: "deletion",
	does: "deletes registrations that are idle, gone and busy, over REST and by config.sh remove, and looks at the listener",
	assumptions: []findings.Assumption{
		{
			Name:     "delete-idle",
			Text:     "DELETE of an idle runner that listens is answered 204.",
			ReliedOn: "internal/agent/decide.go: a host leaves GitHub before its listener ends",
		},
		{
			Name:     "listener-of-deleted",
			Text:     "The listener of a deleted registration ends by itself with exit code 0, and deletes .runner and .credentials.",
			ReliedOn: "internal/agent/decide_serve.go: that end is GitHub's doing and not the host's",
		},
		{
			Name:     "delete-gone",
			Text:     "DELETE of a runner that is gone is answered 404.",
			ReliedOn: "internal/github/runners.go: it counts as deleted",
		},
		{
			Name:     "label-gone",
			Text:     "A PUT of the labels of a runner that is gone is answered 404.",
			ReliedOn: "internal/fleet/hosts/standby.go: such a host registers again for its run",
		},
		{
			Name:     "remove-without-files",
			Text:     "config.sh remove without the registration's files succeeds.",
			ReliedOn: "internal/host/register.go: a removal may be repeated",
		},
		{
			Name:     "remove-gone",
			Text:     "config.sh remove of a registration that is gone succeeds, or prints a 404 that the agent reads as success.",
			ReliedOn: "internal/agent/cause.go: RemovedBefore",
		},
		{
			Name:     "delete-busy",
			Text:     "DELETE of a runner with a job is answered 422, and the job goes on.",
			ReliedOn: "internal/github/runners.go: a host with a job is left alone",
		},
		{
			Name:     "remove-busy",
			Text:     "config.sh remove of a runner with a job fails, and prints what the agent reads as a job that is assigned.",
			ReliedOn: "internal/agent/cause.go: JobAssigned",
		},
	},
	run: checkDeletion,
}

func checkDeletion(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	if err := deleteListening(ctx, s, r); err != nil {
		return err
	}
	r.name = s.name("runner")
	if err := r.register(ctx, s.name("label")); err != nil {
		return err
	}
	if err := s.gh.deleteRunner(ctx, r.id); err != nil {
		return err
	}
	output, code, err := r.remove(ctx)
	if err != nil {
		return err
	}
	s.Decide("remove-gone", code == 0 || agent.RemovedBefore(output), "exit code %d, left %s: %s", code, listOf(r.files()), lastLines(output))
	return deleteBusy(ctx, s)
}

// deleteListening deletes the registration of a listener that is idle, and then what is gone.
func deleteListening(ctx context.Context, s *session, r *runner) error {
	if err := r.register(ctx, s.name("label")); err != nil {
		return err
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	err = s.gh.deleteRunner(ctx, r.id)
	s.Decide("delete-idle", err == nil, "%s", answerOf(err))
	if err != nil {
		return err
	}
	if err := l.decideEnd(ctx, "listener-of-deleted", func() bool { return l.code() == 0 && len(r.files()) == 0 }); err != nil {
		return err
	}
	err = s.gh.deleteRunner(ctx, r.id)
	s.Decide("delete-gone", statusOf(err) == 404, "%s", answerOf(err))
	err = s.gh.setLabels(ctx, r.id, s.name("label"))
	s.Decide("label-gone", statusOf(err) == 404, "%s", answerOf(err))
	output, code, err := r.remove(ctx)
	if err == nil {
		s.Decide("remove-without-files", code == 0, "exit code %d: %s", code, lastLines(output))
	}
	return err
}

// deleteBusy tries to delete a runner with a job in both ways, and lets the job end.
func deleteBusy(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	label, gate := s.name("label"), s.newGate()
	if err := r.register(ctx, label); err != nil {
		return err
	}
	if _, err := r.listen(ctx); err != nil {
		return err
	}
	runs, err := s.startJob(ctx, label, gate.step())
	if err != nil {
		return err
	}
	if _, err := s.mustWatch(ctx, "the job's step", gate.passing); err != nil {
		return err
	}
	refused := s.gh.deleteRunner(ctx, r.id)
	output, code, err := r.remove(ctx)
	if err != nil {
		return err
	}
	s.Decide("remove-busy", code != 0 && agent.JobAssigned(output), "exit code %d, left %s: %s", code, listOf(r.files()), lastLines(output))
	if err := gate.open(); err != nil {
		return err
	}
	j, _, err := runs.completed(ctx)
	if err == nil {
		s.Decide("delete-busy", statusOf(refused) == 422 && j.Conclusion == "success", "%s; the job ended as %s", answerOf(refused), j.Conclusion)
	}
	return err
}

// answerOf is the status of an answer, with what an error says.
func answerOf(err error) string {
	if err == nil {
		return "answered with success"
	}
	return fmt.Sprintf("answered %v", err)
}

// listOf is a list for a sentence.
func listOf(list []string) string {
	if len(list) == 0 {
		return "no files"
	}
	return strings.Join(list, ", ")
}
