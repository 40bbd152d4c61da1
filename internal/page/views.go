package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// How many rows a page has at most, so that it is small.
const (
	shownWaits   = 50 // of the first page
	shownWaiting = 100
	shownEvents  = 30
	shownHosts   = 100
	shownRuns    = 100
	shownCosts   = 200

	mostWaits = 1000 // that are read
)

// overview is how the fleet is now: budgets that are near their end, pools, what waits, and what happened just now.
func (p *page) overview(ctx context.Context, _ *http.Request) (view, error) {
	now := p.Now()
	v := view{Title: "Now", Live: true}
	budgets, err := p.Fleet.ListBudgets(ctx, &remudav1.ListBudgetsRequest{})
	if err != nil {
		return v, err
	}
	pools, err := p.listPools(ctx, now, time.Minute)
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
		waitTable("What waits for hosts", waits.GetWaits(), now))
	if waits.GetMore() {
		v.Tables[1].More = &htmlCell{Text: "All that waits", Link: Path + "waiting"}
	}
	budgets.Budgets = slices.DeleteFunc(budgets.Budgets, func(b *remudav1.Budget) bool { return b.GetState() == remudav1.BudgetState_BUDGET_STATE_WITHIN })
	if len(budgets.GetBudgets()) > 0 {
		v.Tables = append(v.Tables, tableOf("Budgets that are near their end, or used up", views.Budgets(budgets), ""))
	}
	v.Tables = append(v.Tables, eventTable("What happened last", events.GetEvents(), now))
	return v, nil
}

// listPools reads the pools with the numbers of their hosts, at most once in ten seconds. old is until when an older answer will do.
func (p *page) listPools(ctx context.Context, now time.Time, old time.Duration) (*remudav1.ListPoolsResponse, error) {
	question := recent.Question{Now: now, Young: 10 * time.Second, Old: old, Within: answerWithin}
	return p.pools.Get(ctx, question, func(ctx context.Context) (*remudav1.ListPoolsResponse, error) {
		return p.Fleet.ListPools(ctx, &remudav1.ListPoolsRequest{PageSize: 1000})
	})
}

// eventTable has the newest first.
func eventTable(title string, events []*remudav1.Event, now time.Time) htmlTable {
	t := table.Table{Head: []string{"TIME", "HOST", "ACTION", "REPOSITORY", "RUN", "REASON"}}
	for _, e := range slices.Backward(events) {
		t.Rows = append(t.Rows, table.Row(eventTime(e.GetEventTime().AsTime(), now), e.GetInstanceId(), views.Action(e.GetAction()),
			e.GetRepository(), e.GetRunId(), e.GetReason()))
	}
	return tableOf(title, t, "Nothing happened in the last hour.")
}

// eventTime is a time of the last 24 hours, with the day if it is not of today.
func eventTime(t, now time.Time) string {
	if t.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.UTC().Format(time.TimeOnly)
	}
	return t.UTC().Format("01-02 15:04:05")
}

// host explains one host.
func (p *page) host(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	return p.explained(ctx, "Host "+id, &remudav1.ExplainRunRequest{InstanceId: id}, nil)
}

// run explains one run. What of it waits is in no event, so it is asked for.
func (p *page) run(ctx context.Context, r *http.Request) (view, error) {
	repository, run := r.PathValue("owner")+"/"+r.PathValue("name"), r.PathValue("run")
	waiting, err := p.Fleet.ListWaiting(ctx, &remudav1.ListWaitingRequest{RowLimit: mostWaits})
	if err != nil {
		return view{}, err
	}
	waits := slices.DeleteFunc(waiting.GetWaits(), func(w *remudav1.Wait) bool {
		return w.GetRunId() != run || !strings.EqualFold(w.GetRepository(), repository)
	})
	return p.explained(ctx, fmt.Sprintf("Run %s of %s", run, repository), &remudav1.ExplainRunRequest{Repository: repository, RunId: run}, waits)
}

func (p *page) explained(ctx context.Context, title string, req *remudav1.ExplainRunRequest, waits []*remudav1.Wait) (view, error) {
	v := view{Title: title, Live: true}
	resp, err := p.Fleet.ExplainRun(ctx, req)
	if err != nil {
		return v, err
	}
	events := resp.GetEvents()
	for _, sentence := range resp.GetSentences()[:max(0, len(resp.GetSentences())-len(events))] { // the last are the history
		v.Text = append(v.Text, table.Printable(sentence))
	}
	if c := timeline(events, waits, p.Now()); len(c.Lanes) > 0 {
		v.Chart = c
		v.Text = append(v.Text, c.portion()...)
	}
	if len(events) > 0 {
		v.Tables = []htmlTable{eventTable("History", events, p.Now())}
	}
	return v, nil
}

// waiting is all that waits.
func (p *page) waiting(ctx context.Context, r *http.Request) (view, error) {
	pool := r.URL.Query().Get("pool")
	v := view{Title: "Waiting", Filters: []filter{{Name: "pool", Label: "Pool", Value: pool}}}
	resp, err := p.Fleet.ListWaiting(ctx, &remudav1.ListWaitingRequest{Pool: pool, RowLimit: mostWaits})
	if err != nil {
		return v, err
	}
	waits := resp.GetWaits()
	if resp.GetMore() {
		v.Text = []string{fmt.Sprintf("More wait than these %d, which wait longest.", len(waits))}
	}
	s := sectionOf(r, every(shownWaiting, len(waits)), len(waits))
	v.Live = s.previous == ""
	v.divide(s, "Rows")
	v.Tables = []htmlTable{waitTable("", waits[s.from:s.to], p.Now())}
	return v, nil
}

// waitTable has what happens next too.
func waitTable(title string, waits []*remudav1.Wait, now time.Time) htmlTable {
	t := views.Waits(waits, now, false)
	t.Head = append(t.Head, "NEXT", "LINE")
	for i, w := range waits {
		t.Rows[i] = append(t.Rows[i], table.Row(w.GetNext(), w.GetLine())...)
	}
	return tableOf(title, t, "Nothing waits for hosts.")
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
