package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// WhyFlags are the flags of Why.
type WhyFlags struct {
	// Statement prints the signed statements of resets instead of the explanation.
	Statement bool
}

// Why explains a run, a job or a host.
func (a *App) Why(ctx context.Context, args []string, f WhyFlags) error {
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
		req.Statements = f.Statement
		resp, err := s.explain(ctx, req)
		instead := ""
		if failure.CodeOf(err) == failure.NotFound && about.JobID != 0 { // its run may have been explained without webhooks too
			resp, err = s.explain(ctx, &remudav1.ExplainRunRequest{Repository: about.Repository, RunId: about.RunID, Statements: f.Statement})
			instead = fmt.Sprintf("Job %d is not known by itself. This is about its run:\n", about.JobID)
		}
		if err != nil {
			return err
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		if f.Statement {
			return a.printStatements(resp)
		}
		_, err = fmt.Fprint(a.Stdout, instead+view.Why(resp, a.wide()))
		return failure.Of("write explanation", err)
	})
}

func (a *App) printStatements(resp *remudav1.ExplainRunResponse) error {
	text, err := view.Statements(resp)
	switch {
	case err != nil:
		return failure.Of("print statements", err)
	case text == "":
		return &failure.Error{Code: failure.NotFound, Err: errors.New("there is no signed statement of a reset"),
			Remedy: "A host has none before its first reset, if its agent is an older one, and 24 hours after the reset."}
	}
	_, err = fmt.Fprint(a.Stdout, text)
	return failure.Of("write statements", err)
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
