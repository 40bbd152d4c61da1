package page

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const shownDecisions = 300

// plan is what the next scale-down would do, or one at a later time.
func (p *page) plan(ctx context.Context, r *http.Request) (view, error) {
	at := r.URL.Query().Get("at")
	v := view{Title: "Plan", Filters: []filter{{Name: "at", Label: "At, such as 02:00", Value: at}}}
	req := &remudav1.PlanScaleDownRequest{RowLimit: shownDecisions}
	if at != "" {
		when, err := views.PlanTime(at, p.Now())
		if err != nil {
			return v, status.Error(codes.InvalidArgument, err.Error())
		}
		req.DecideTime = timestamppb.New(when)
	}
	resp, err := p.Fleet.PlanScaleDown(ctx, req)
	if status.Code(err) == codes.FailedPrecondition { // no scale-down is configured
		v.Text = []string{status.Convert(err).Message()}
		return v, nil
	}
	if err != nil {
		return v, err
	}
	read := resp.GetReadTime().AsTime().UTC().Format(time.TimeOnly)
	v.Text = []string{fmt.Sprintf("What the next scale-down would do with each host, as of %s.", read)}
	if at != "" {
		v.Text = []string{fmt.Sprintf("What a scale-down at %s would do with each host of %s, if no job begins or ends and no host comes or goes until then.",
			resp.GetDecideTime().AsTime().UTC().Format(time.RFC3339), read)}
	}
	if n := resp.GetMoreDecisions(); n > 0 {
		v.Text = append(v.Text, plural.Of(n, "more is", "more are")+" left out; remuda plan has "+plural.Word(n, "it.", "them."))
	}
	v.Tables = []htmlTable{
		tableOf("What the schedules want", views.PoolPlans(resp), ""),
		tableOf("Hosts", views.Decisions(resp.GetDecisions()), "There is no host to judge. A scale-down judges hosts of runs that are not held and not leaving; Hosts says when the others end."),
	}
	return v, nil
}
