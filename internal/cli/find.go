package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// find is the request for an id as tables, events and explanations show it: of a run without its repository, a request, a job, a slot of a job
// pool or the launches of a warm pool. It looks among what lives, then what waits, then the history of a day, and then the jobs.
func (s *session) find(ctx context.Context, about subject.Subject) (*remudav1.ExplainRunRequest, error) {
	for _, among := range []func(context.Context, subject.Subject) ([]*remudav1.ExplainRunRequest, error){
		s.amongHosts, s.amongWaits, s.amongEvents, s.amongJobs,
	} {
		found, err := among(ctx, about)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, failure.Misused("%s is of several repositories, %s: name one of them", about, strings.Join(repositories(found), ", "))
		}
	}
	e := &failure.Error{Code: failure.NotFound, Doing: "explain " + about.String(), Err: errors.New("no host, request or job has this id, and no event of the last 24 hours")}
	if !about.InPool() {
		e.Remedy = "Name its repository too, if it is a run: `remuda why owner/name/" + about.RunID + "`."
	}
	return nil, e
}

// amongHosts finds what a host serves: a slot is explained by its host.
func (s *session) amongHosts(ctx context.Context, about subject.Subject) ([]*remudav1.ExplainRunRequest, error) {
	list, err := s.hosts(ctx, &remudav1.ListInstancesRequest{States: alive})
	if err != nil {
		return nil, err
	}
	var found requests
	for _, h := range list {
		j := h.GetJob()
		switch {
		case about.Repository != "" && !strings.EqualFold(about.Repository, h.GetRepository()):
		case about.InPool() && (h.GetRunId() == about.RunID || h.GetRequestId() == about.RunID):
			found.add(&remudav1.ExplainRunRequest{InstanceId: h.GetInstanceId()})
		case about.RunID == idOf(j.GetJobId()):
			found.add(&remudav1.ExplainRunRequest{JobId: j.GetJobId()})
		case about.RunID == j.GetRunId() || about.RunID == h.GetRunId() || about.RunID == h.GetRequestId():
			found.add(&remudav1.ExplainRunRequest{Repository: cmp.Or(j.GetRepository(), h.GetRepository()), RunId: cmp.Or(j.GetRunId(), h.GetRunId())})
		}
	}
	return found, nil
}

// amongWaits finds what waits for a host.
func (s *session) amongWaits(ctx context.Context, about subject.Subject) ([]*remudav1.ExplainRunRequest, error) {
	resp, err := call(ctx, s, DefaultTimeout, "list what waits", s.fleet.ListWaiting, &remudav1.ListWaitingRequest{RowLimit: pageSize})
	if err != nil {
		return nil, err
	}
	var found requests
	for _, w := range resp.GetWaits() {
		switch {
		case about.RunID == idOf(w.GetJobId()):
			found.add(&remudav1.ExplainRunRequest{JobId: w.GetJobId()})
		case about.RunID == w.GetRunId() || about.RunID == w.GetRequestId():
			found.add(&remudav1.ExplainRunRequest{Repository: w.GetRepository(), RunId: w.GetRunId()})
		}
	}
	return found, nil
}

// historyRead and historySince are the most that the contract allows.
const (
	historyRead  = 10_000
	historySince = 24 * time.Hour
)

// amongEvents finds what the history has. A pool's own id is explained by the host that it last had.
func (s *session) amongEvents(ctx context.Context, about subject.Subject) ([]*remudav1.ExplainRunRequest, error) {
	req := &remudav1.ListEventsRequest{Since: durationpb.New(historySince), RowLimit: historyRead}
	resp, err := call(ctx, s, DefaultTimeout, "list events", s.fleet.ListEvents, req)
	if err != nil {
		return nil, err
	}
	var found requests
	for _, e := range slices.Backward(resp.GetEvents()) {
		switch {
		case about.RunID == idOf(e.GetJobId()):
			found.add(&remudav1.ExplainRunRequest{Repository: e.GetRepository(), RunId: e.GetRunId(), JobId: e.GetJobId()})
		case about.RunID != e.GetRunId() && about.RunID != e.GetRequestId():
		case about.Repository != "" && !strings.EqualFold(about.Repository, e.GetRepository()):
		case about.InPool() && e.GetInstanceId() != "":
			return requests{{InstanceId: e.GetInstanceId()}}, nil
		case !about.InPool() && e.GetRepository() != "" && e.GetRunId() != "":
			found.add(&remudav1.ExplainRunRequest{Repository: e.GetRepository(), RunId: e.GetRunId()})
		}
	}
	return found, nil
}

// amongJobs finds a job that a webhook announced.
func (s *session) amongJobs(ctx context.Context, about subject.Subject) ([]*remudav1.ExplainRunRequest, error) {
	id, err := strconv.ParseInt(about.RunID, 10, 64)
	if err != nil || id <= 0 {
		return nil, nil
	}
	req := &remudav1.ExplainRunRequest{JobId: id}
	switch _, err := s.explain(ctx, req); {
	case failure.CodeOf(err) == failure.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return requests{req}, nil
}

// requests are different ones.
type requests []*remudav1.ExplainRunRequest

func (r *requests) add(req *remudav1.ExplainRunRequest) {
	if !slices.ContainsFunc(*r, func(known *remudav1.ExplainRunRequest) bool { return proto.Equal(known, req) }) {
		*r = append(*r, req)
	}
}

func repositories(of requests) (names []string) {
	for _, r := range of {
		names = append(names, r.GetRepository())
	}
	slices.Sort(names)
	return names
}

// idOf is an id as people write it; empty for none.
func idOf(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}
