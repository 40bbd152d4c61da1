package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// spans are the choices of how far back the history goes.
var spans = []string{"1h", "4h", "12h", "24h"}

// mostEvents bounds what is read of the history.
const mostEvents = 10_000

// history is what all hosts did in the last hours: a lane for each of them.
type history struct {
	from, to time.Time
	lanes    []lane
	starts   []int // of its sections
	changed  int   // how many of the first lanes have a change
	counts   *tally
	cut      bool // there are more events than are read, so it begins later than was asked for
}

// history is the page of it.
func (p *page) history(ctx context.Context, r *http.Request) (view, error) {
	span := r.URL.Query().Get("span")
	if !slices.Contains(spans, span) {
		span = spans[0]
	}
	v := view{Title: "History", Filters: []filter{{Name: "span", Label: "The last", Value: span, Choices: spans}}}
	h, err := p.drawn(ctx, span)
	if err != nil {
		return v, err
	}
	if h.cut {
		v.Text = append(v.Text, fmt.Sprintf("The history reaches back to %s: a page has at most %d events, and more happened in the last %s.", clock(h.from), mostEvents, span))
	}
	if len(h.lanes) == 0 {
		v.Text = append(v.Text, "There was no host in this time.")
		return v, nil
	}
	v.Text = append(v.Text, fmt.Sprintf("%d hosts changed, and come first, the last one at the top. %d did not.", h.changed, len(h.lanes)-h.changed))
	s := sectionOf(r, h.starts, len(h.lanes))
	v.divide(s, "Hosts")
	v.Chart = &chart{From: h.from, To: h.to, Slider: h.counts}
	v.Chart.show(h.lanes[s.from:s.to])
	return v, nil
}

// drawn reads and draws the history of a span, at most once in ten seconds.
func (p *page) drawn(ctx context.Context, span string) (*history, error) {
	question := recent.Question{Key: span, Now: p.Now(), Young: 10 * time.Second, Old: 30 * time.Second, Within: answerWithin}
	return p.histories.Get(ctx, question, func(ctx context.Context) (*history, error) {
		back, err := time.ParseDuration(span)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		var live *census
		var events *remudav1.ListEventsResponse
		reads, ctx := errgroup.WithContext(ctx)
		reads.Go(func() (err error) { live, err = p.census(ctx); return err })
		reads.Go(func() (err error) {
			events, err = p.Fleet.ListEvents(ctx, &remudav1.ListEventsRequest{Since: durationpb.New(back), RowLimit: mostEvents})
			return err
		})
		if err := reads.Wait(); err != nil {
			return nil, err
		}
		h := historyOf(events.GetEvents(), live.hosts, events.GetFromTime().AsTime(), question.Now)
		h.cut = h.to.Sub(h.from) < back-time.Minute
		return h, nil
	})
}

// historyOf draws what events say of hosts between two times. The hosts come first that changed last, and then those that live and did not change.
func historyOf(events []*remudav1.Event, live []liveHost, from, to time.Time) *history {
	h := &history{from: from, to: to, counts: newTally(from, to)}
	c := &chart{From: from, To: to}
	hosts, changes := changesOf(events)
	for _, id := range hosts {
		h.lanes = append(h.lanes, c.host(id, changes[id], h.counts))
	}
	h.changed = len(h.lanes)
	for _, host := range live {
		if changes[host.id] != nil {
			continue
		}
		l, since := lane{Name: host.id, Link: hostLink(host.id)}, c.within(host.since)
		if name := chartStates[host.state]; name != "" && to.After(since) {
			l.Parts = []part{c.part(name, since, to)}
			h.counts.add(host.state, since, to)
		}
		h.lanes = append(h.lanes, l)
	}
	h.starts = sections(h.lanes)
	return h
}

// changesOf are the events of each host that changed, the oldest first, and these hosts, the one first that changed last.
func changesOf(events []*remudav1.Event) (hosts []string, byHost map[string][]*remudav1.Event) {
	byHost = map[string][]*remudav1.Event{}
	for _, e := range slices.Backward(events) {
		if id := e.GetInstanceId(); id != "" && (e.GetToState() != remudav1.State_STATE_UNSPECIFIED || byHost[id] != nil) {
			if byHost[id] == nil {
				hosts = append(hosts, id)
			}
			byHost[id] = append(byHost[id], e)
		}
	}
	for _, all := range byHost {
		slices.Reverse(all)
	}
	return hosts, byHost
}
