package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/cli/table"
	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// How many rows a page has at most, so that it is small.
const (
	shownWaits  = 50
	shownEvents = 30
	shownHosts  = 100
	shownRuns   = 200
	shownCosts  = 200
)

// overview is how the fleet is now: budgets that are near their end, pools, what waits, and what happened just now.
func (p *page) overview(ctx context.Context, _ *http.Request) (view, error) {
	now := p.Now()
	v := view{Title: "Now", Live: true}
	budgets, err := p.Fleet.ListBudgets(ctx, &remudav1.ListBudgetsRequest{})
	if err != nil {
		return v, err
	}
	pools, err := p.pools.Get(ctx, recent.Question{Now: now, Young: 10 * time.Second, Old: time.Minute, Within: answerWithin}, func(ctx context.Context) (*remudav1.ListPoolsResponse, error) {
		return p.Fleet.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: 1000})
	})
	if err != nil {
		return v, err
	}
	waits, err := p.Fleet.ListWaiting(ctx, &remudav1.ListWaitingRequest{RowLimit: shownWaits})
	if err != nil {
		return v, err
	}
	events, err := p.Fleet.ListEvents(ctx, &remudav1.ListEventsRequest{RowLimit: shownEvents})
	if err != nil {
		return v, err
	}
	v.Tables = append(v.Tables,
		tableOf("Pools", views.Pools(pools.GetPools(), now, false), "No pool is configured."),
		tableOf("What waits for hosts", views.Waits(waits.GetWaits(), now, false), "Nothing waits for hosts."))
	budgets.Budgets = slices.DeleteFunc(budgets.Budgets, func(b *remudav1.Budget) bool { return b.GetState() == remudav1.BudgetState_BUDGET_STATE_WITHIN })
	if len(budgets.GetBudgets()) > 0 {
		v.Tables = append(v.Tables, tableOf("Budgets that are near their end, or used up", views.Budgets(budgets), ""))
	}
	v.Tables = append(v.Tables, eventTable("What happened last", events.GetEvents()))
	return v, nil
}

// eventTable has the newest first.
func eventTable(title string, events []*remudav1.Event) htmlTable {
	t := table.Table{Head: []string{"TIME", "HOST", "ACTION", "REPOSITORY", "RUN", "REASON"}}
	for _, e := range slices.Backward(events) {
		t.Rows = append(t.Rows, table.Row(e.GetEventTime().AsTime().UTC().Format(time.TimeOnly), e.GetInstanceId(), views.Action(e.GetAction()),
			e.GetRepository(), e.GetRunId(), e.GetReason()))
	}
	return tableOf(title, t, "Nothing happened in the last hour.")
}

// alive are the states of hosts that have not ended.
var alive = []remudav1.State{remudav1.State_STATE_CREATED, remudav1.State_STATE_CLAIMED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE}

// hostStates are the choices of the filter of hosts.
var hostStates = []string{"created", "claimed", "running", "idle"}

// hosts are a page of them, as controld lists them.
func (p *page) hosts(ctx context.Context, r *http.Request) (view, error) {
	query := r.URL.Query()
	req := &remudav1.ListInstancesRequest{
		Pool: query.Get("pool"), Repository: query.Get("repository"), States: alive, PageSize: shownHosts, PageToken: query.Get("after"),
	}
	if i := slices.Index(hostStates, query.Get("state")); i >= 0 {
		req.States = alive[i : i+1]
	}
	v := view{Title: "Hosts", Live: req.PageToken == "", Filters: []filter{
		{Name: "pool", Label: "Pool", Value: query.Get("pool")}, {Name: "repository", Label: "Repository", Value: query.Get("repository")},
		{Name: "state", Label: "State", Value: query.Get("state"), Choices: hostStates},
	}}
	resp, err := p.Fleet.ListInstances(ctx, req)
	if err != nil {
		return v, err
	}
	if next := resp.GetNextPageToken(); next != "" {
		query.Set("after", next)
		v.Next = Path + "hosts?" + query.Encode()
	}
	views.Sort(resp.Instances)
	v.Tables = []htmlTable{tableOf("", views.Hosts(resp.GetInstances(), p.Now(), false), "There are no such hosts.")}
	return v, nil
}

// runs are the runs that have hosts, as far as the first hosts say.
func (p *page) runs(ctx context.Context, _ *http.Request) (view, error) {
	v := view{Title: "Runs", Live: true}
	req := &remudav1.ListInstancesRequest{States: alive[:3], PageSize: 1000}
	resp, err := p.Fleet.ListInstances(ctx, req)
	if err != nil {
		return v, err
	}
	runs := views.RunsOf(resp.GetInstances(), p.Now())
	if len(runs) > shownRuns || resp.GetNextPageToken() != "" {
		v.Text = []string{"There are more than these. remuda runs has all of them."}
		runs = runs[:min(shownRuns, len(runs))]
	}
	v.Tables = []htmlTable{tableOf("", views.Runs(runs, p.Now(), false), "No run has a host.")}
	return v, nil
}

// host explains one host.
func (p *page) host(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	return p.explained(ctx, "Host "+id, &remudav1.ExplainRunRequest{InstanceId: id})
}

// run explains one run.
func (p *page) run(ctx context.Context, r *http.Request) (view, error) {
	repository, run := r.PathValue("owner")+"/"+r.PathValue("name"), r.PathValue("run")
	return p.explained(ctx, fmt.Sprintf("Run %s of %s", run, repository), &remudav1.ExplainRunRequest{Repository: repository, RunId: run})
}

func (p *page) explained(ctx context.Context, title string, req *remudav1.ExplainRunRequest) (view, error) {
	v := view{Title: title, Live: true}
	resp, err := p.Fleet.ExplainRun(ctx, req)
	if err != nil {
		return v, err
	}
	events := resp.GetEvents()
	for _, sentence := range resp.GetSentences()[:max(0, len(resp.GetSentences())-len(events))] { // the last are the history
		v.Text = append(v.Text, table.Printable(sentence))
	}
	if len(events) > 0 {
		if c := chartOf(events, events[0].GetEventTime().AsTime(), p.Now()); len(c.Lanes) > 0 {
			v.Chart = c
		}
		v.Tables = []htmlTable{eventTable("History", events)}
	}
	return v, nil
}

// waiting is all that waits.
func (p *page) waiting(ctx context.Context, r *http.Request) (view, error) {
	pool := r.URL.Query().Get("pool")
	v := view{Title: "Waiting", Live: true, Filters: []filter{{Name: "pool", Label: "Pool", Value: pool}}}
	resp, err := p.Fleet.ListWaiting(ctx, &remudav1.ListWaitingRequest{Pool: pool, RowLimit: 300})
	if err != nil {
		return v, err
	}
	if resp.GetMore() {
		v.Text = []string{"Others wait too."}
	}
	v.Tables = []htmlTable{tableOf("", views.Waits(resp.GetWaits(), p.Now(), false), "Nothing waits for hosts.")}
	return v, nil
}

// spans are the choices of how far back the history goes.
var spans = []string{"1h", "4h", "12h", "24h"}

// history is what the hosts did in the last hours.
func (p *page) history(ctx context.Context, r *http.Request) (view, error) {
	span := r.URL.Query().Get("span")
	if !slices.Contains(spans, span) {
		span = spans[0]
	}
	v := view{Title: "History", Filters: []filter{{Name: "span", Label: "The last", Value: span, Choices: spans}}}
	back, err := time.ParseDuration(span)
	if err != nil {
		return v, status.Error(codes.InvalidArgument, err.Error())
	}
	resp, err := p.Fleet.ListEvents(ctx, &remudav1.ListEventsRequest{Since: durationpb.New(back), RowLimit: 10_000})
	if err != nil {
		return v, err
	}
	v.Chart = chartOf(resp.GetEvents(), resp.GetFromTime().AsTime(), p.Now())
	v.Chart.Slider = len(v.Chart.Lanes) > 0
	switch {
	case len(v.Chart.Lanes) == 0:
		v.Chart, v.Text = nil, []string{"No host changed in this time."}
	case v.Chart.More > 0:
		v.Text = []string{fmt.Sprintf("The hosts that changed last are shown; %d others changed too.", v.Chart.More)}
	}
	return v, nil
}

// cost says what hosts were used for.
func (p *page) cost(ctx context.Context, r *http.Request) (view, error) {
	query := r.URL.Query()
	kind, days := query.Get("by"), query.Get("days")
	by, ok := views.CostBy(kind)
	if !ok {
		kind, by = "repository", remudav1.CostBy_COST_BY_REPOSITORY
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 1 || n > 400 {
		n = 30
	}
	v := view{Title: "Cost", Filters: []filter{
		{Name: "by", Label: "By", Value: kind, Choices: views.CostKinds()}, {Name: "days", Label: "Days", Value: strconv.Itoa(n)},
		{Name: "repository", Label: "Repository or owner", Value: query.Get("repository")},
	}}
	req := &remudav1.GetCostRequest{
		By: by, Since: p.Now().UTC().AddDate(0, 0, 1-n).Format(time.DateOnly), Repository: query.Get("repository"), RowLimit: shownCosts,
	}
	question := recent.Question{Key: req.String(), Now: p.Now(), Young: time.Minute, Old: 5 * time.Minute, Within: answerWithin}
	report, err := p.costs.Get(ctx, question, func(ctx context.Context) (*remudav1.GetCostResponse, error) { return p.Fleet.GetCost(ctx, req) })
	if err != nil {
		return v, err
	}
	budgets, err := p.Fleet.ListBudgets(ctx, &remudav1.ListBudgetsRequest{})
	if err != nil {
		return v, err
	}
	v.Text = views.CostNotes(report)
	if len(budgets.GetBudgets()) > 0 {
		v.Tables = append(v.Tables, tableOf("Budgets of "+budgets.GetMonth(), views.Budgets(budgets), ""))
	}
	v.Tables = append(v.Tables, tableOf(fmt.Sprintf("From %s to %s", report.GetSince(), report.GetUntil()), views.Costs(by, report), "No such host was used."))
	return v, nil
}

// services are those on ECS, and queues of their own.
func (p *page) services(ctx context.Context, _ *http.Request) (view, error) {
	v := view{Title: "Services", Live: true}
	resp, err := p.Fleet.ListServices(ctx, &remudav1.ListServicesRequest{PageSize: 1000})
	if err != nil {
		return v, err
	}
	v.Tables = []htmlTable{tableOf("", views.Services(resp.GetServices(), p.Now(), false), "No service is configured.")}
	return v, nil
}

// Menu are the titles of the pages that each page leads to.
var Menu = []string{"Now", "Runs", "Hosts", "Waiting", "History", "Cost", "Plan", "Services", "Server"}

// Links lead to the pages of Menu.
func (v view) Links() []htmlCell {
	var menu []htmlCell
	for _, title := range Menu {
		link := Path + strings.ToLower(title)
		if title == "Now" {
			link = Path
		}
		cell := htmlCell{Text: title, Link: link}
		if title == v.Title {
			cell.Class = "here"
		}
		menu = append(menu, cell)
	}
	return menu
}
