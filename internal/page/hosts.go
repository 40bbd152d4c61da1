package page

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// alive are the states of hosts that have not ended.
var alive = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE}

// marks are what a host may be beside its state, as the filter of hosts has them.
var marks = []string{"held", "retiring"}

// hostStates are the choices of the filter of hosts: states and marks.
var hostStates = append([]string{"created", "claimed", "running", "idle"}, marks...)

// hosts are a page of them.
func (p *page) hosts(ctx context.Context, r *http.Request) (view, error) {
	query := r.URL.Query()
	pool, repository, state := query.Get("pool"), query.Get("repository"), query.Get("state")
	v := view{Title: "Hosts", Live: !query.Has(after), Filters: []filter{
		{Name: "pool", Label: "Pool", Value: pool}, {Name: "repository", Label: "Repository", Value: repository},
		{Name: "state", Label: "State", Value: state, Choices: hostStates},
	}}
	req := &remudav1.ListInstancesRequest{Pool: pool, Repository: repository, States: alive, Held: state == "held", Retiring: state == "retiring"}
	if i := slices.Index(hostStates, state); i >= 0 && i < len(alive) {
		req.States = alive[i : i+1]
	}
	shown, err := p.some(ctx, r, &v, req, nil)
	if err != nil {
		return v, err
	}
	views.Sort(shown)
	v.Tables = []htmlTable{tableOf("", views.Hosts(shown, p.Now(), false), "There are no such hosts.")}
	return v, nil
}

// after is the field of a query that has the token of a page of hosts, and skip how many of that page were shown.
const (
	after = "after"
	skip  = "skip"
)

// some are the hosts of a page of the listing: those that pass its filter, and for which keep, unless it is nil, is true. It reads on until
// there are some.
func (p *page) some(ctx context.Context, r *http.Request, v *view, req *remudav1.ListInstancesRequest, keep func(*remudav1.Instance) bool) ([]*remudav1.Instance, error) {
	query := r.URL.Query()
	skipped, err := strconv.Atoi(query.Get(skip))
	if err != nil || skipped < 0 {
		skipped = 0
	}
	req.PageToken, req.PageSize = query.Get(after), shownHosts
	if keep != nil || req.GetRepository() != "" || req.GetHeld() || req.GetRetiring() {
		req.PageSize = 1000 // few of them may pass
	}
	for {
		resp, err := p.Fleet.ListInstances(ctx, req)
		if err != nil {
			return nil, err
		}
		found, next := resp.GetInstances(), resp.GetNextPageToken()
		if keep != nil {
			found = slices.DeleteFunc(found, func(i *remudav1.Instance) bool { return !keep(i) })
		}
		found = found[min(skipped, len(found)):]
		switch {
		case len(found) > shownHosts:
			v.Next = nextHosts(r, req.GetPageToken(), skipped+shownHosts)
			return found[:shownHosts], nil
		case next == "":
			return found, nil
		case len(found) > 0:
			v.Next = nextHosts(r, next, 0)
			return found, nil
		}
		req.PageToken, skipped = next, 0
	}
}

// nextHosts is the address of the page after one, with the same filters.
func nextHosts(r *http.Request, token string, skipped int) string {
	query := r.URL.Query()
	query.Set(after, token)
	query.Del(skip)
	if skipped > 0 {
		query.Set(skip, strconv.Itoa(skipped))
	}
	return r.URL.Path + "?" + query.Encode()
}
