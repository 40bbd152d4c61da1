package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Why explains a run, a job or a host.
func (a *App) Why(ctx context.Context, args []string) error {
	about, err := subject.Parse(args)
	if err != nil {
		return failure.Misused("%v", err)
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		req, err := s.explainable(ctx, about)
		if err != nil {
			return err
		}
		resp, err := s.explain(ctx, req)
		instead := ""
		if failure.CodeOf(err) == failure.NotFound && about.JobID != 0 { // its run may have been explained without webhooks too
			resp, err = s.explain(ctx, &remudav1.ExplainRunRequest{Repository: about.Repository, RunId: about.RunID})
			instead = fmt.Sprintf("Job %d is not known by itself. This is about its run:\n", about.JobID)
		}
		if err != nil {
			return err
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		_, err = fmt.Fprint(a.Stdout, instead+view.Why(resp, a.wide()))
		return failure.Of("write explanation", err)
	})
}

func (s *session) explain(ctx context.Context, req *remudav1.ExplainRunRequest) (*remudav1.ExplainRunResponse, error) {
	doing := fmt.Sprintf("explain run %s %s", req.GetRepository(), req.GetRunId())
	switch {
	case req.GetInstanceId() != "":
		doing = "explain host " + req.GetInstanceId()
	case req.GetJobId() != 0:
		doing = fmt.Sprint("explain job ", req.GetJobId())
	}
	return call(ctx, s, DefaultTimeout, doing, s.fleet.ExplainRun, req)
}

// explainable is the request for a subject. An id alone is looked up.
func (s *session) explainable(ctx context.Context, about subject.Subject) (*remudav1.ExplainRunRequest, error) {
	if about.InstanceID == "" && (about.Repository == "" || about.InPool()) {
		return s.find(ctx, about)
	}
	return &remudav1.ExplainRunRequest{InstanceId: about.InstanceID, Repository: about.Repository, RunId: about.RunID, JobId: about.JobID}, nil
}
