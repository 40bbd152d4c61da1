package page

import (
	"context"
	"time"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// alive are the states of hosts that have not ended.
var alive = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE}

// serving are the states of hosts that a run has.
var serving = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING}

// census reads the runs of all hosts that have one, at most once in ten seconds for all who look.
func (p *page) census(ctx context.Context) ([]views.Run, error) {
	question := recent.Question{Now: p.Now(), Young: 10 * time.Second, Old: time.Minute, Within: answerWithin}
	return p.censuses.Get(ctx, question, func(ctx context.Context) ([]views.Run, error) {
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

// listPools reads the pools with the numbers of their hosts, at most once in ten seconds. old is until when an older answer will do.
func (p *page) listPools(ctx context.Context, now time.Time, old time.Duration) (*remudav1.ListPoolsResponse, error) {
	question := recent.Question{Now: now, Young: 10 * time.Second, Old: old, Within: answerWithin}
	return p.pools.Get(ctx, question, func(ctx context.Context) (*remudav1.ListPoolsResponse, error) {
		return p.Fleet.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: 1000})
	})
}
