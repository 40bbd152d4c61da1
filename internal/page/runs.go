package page

import (
	"context"
	"net/http"
	"time"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// runs are the runs that have hosts.
func (p *page) runs(ctx context.Context, r *http.Request) (view, error) {
	v := view{Title: "Runs"}
	all, err := p.servedRuns(ctx)
	if err != nil {
		return v, err
	}
	s := sectionOf(r, every(shownRuns, len(all)), len(all))
	v.Live = s.previous == ""
	v.divide(s, "Runs")
	v.Tables = []htmlTable{tableOf("", views.Runs(all[s.from:s.to], p.Now(), false), "No run has a host.")}
	return v, nil
}

// serving are the states of hosts that a run has.
var serving = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING}

// servedRuns reads the runs of all hosts that have one, at most once in ten seconds for all who look.
func (p *page) servedRuns(ctx context.Context) ([]views.Run, error) {
	question := recent.Question{Now: p.Now(), Young: 10 * time.Second, Old: time.Minute, Within: answerWithin}
	return p.served.Get(ctx, question, func(ctx context.Context) ([]views.Run, error) {
		var all []*remudav1.Instance
		for req := (&remudav1.ListInstancesRequest{States: serving, PageSize: 1000}); ; {
			resp, err := p.Fleet.ListInstances(ctx, req)
			if err != nil {
				return nil, err
			}
			all = append(all, resp.GetInstances()...)
			if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
				return views.RunsOf(all, question.Now), nil
			}
		}
	})
}
