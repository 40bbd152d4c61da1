package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// spans are the choices of how far back the history goes.
var spans = []string{"1h", "4h", "12h", "24h"}

const (
	// mostEvents bounds what is read of the history.
	mostEvents = 10_000
	// mostHistories bounds how many are kept, of some MB each: their ends are the callers' choice.
	mostHistories = 10
)

// history is what all hosts did in the last hours.
type history struct {
	from, to time.Time
	// changed are the hosts that changed, the one first that changed last. starts are where the sections of their lanes begin.
	changed []life
	starts  []int
	ids     map[string]bool // of the changed ones
	// same is how many live hosts did not change.
	same   int
	counts *tally
	cut    bool // there are more events than are read, so it begins later than was asked for
}

// history is the page of it: first the hosts that changed, section by section, and then those that did not, as they are listed.
func (p *page) history(ctx context.Context, r *http.Request) (view, error) {
	span := r.URL.Query().Get("span")
	if !slices.Contains(spans, span) {
		span = spans[0]
	}
	until, err := untilOf(r)
	if err != nil {
		return view{}, err
	}
	v := view{Title: "History", Filters: []filter{{Name: "span", Label: "The last", Value: span, Choices: spans}}}
	h, err := p.read(ctx, span, until)
	if err != nil {
		return v, err
	}
	if h.cut || !until.IsZero() {
		v.around(r, h.from, until, p.Now())
	}
	if !until.IsZero() {
		v.Text = append(v.Text, fmt.Sprintf("This is what happened from %s to %s. Hosts that did not change are not counted.", clock(h.from), clock(h.to)))
	}
	if h.cut {
		v.Text = append(v.Text, fmt.Sprintf("The history reaches back to %s: a page has at most %d events, and more happened in the last %s.", clock(h.from), mostEvents, span))
	}
	if len(h.changed) == 0 && h.same == 0 {
		v.Text = append(v.Text, "There was no host in this time.")
		return v, nil
	}
	changed := plural.Of(len(h.changed), "host changed, and comes", "hosts changed, and come") + " first, the last one at the top."
	if until.IsZero() {
		changed += fmt.Sprintf(" %d did not.", h.same)
	}
	v.Text = append(v.Text, changed)
	v.Chart = &chart{From: h.from, To: h.to, Slider: h.counts}
	if until.IsZero() && r.URL.Query().Has(unchanged) || len(h.changed) == 0 {
		err := p.sameHosts(ctx, r, &v, h)
		return v, err
	}
	s := sectionOf(r, h.starts, len(h.changed))
	v.divide(s, "Hosts")
	if v.Next == "" && h.same > 0 {
		v.Next = r.URL.Path + "?" + url.Values{"span": {span}, unchanged: {""}}.Encode()
	}
	var lanes []lane
	for _, l := range h.changed[s.from:s.to] {
		lanes = append(lanes, v.Chart.host(l))
	}
	v.Chart.show(lanes)
	return v, nil
}

// unchanged is the field of a query that asks for hosts that did not change.
const unchanged = "unchanged"

// sameHosts draws some of the hosts that did not change.
func (p *page) sameHosts(ctx context.Context, r *http.Request, v *view, h *history) error {
	// A host that changed since the history was read is among those that changed when it is read again.
	hosts, err := p.some(ctx, r, v, &remudav1.ListInstancesRequest{States: alive}, func(i *remudav1.Instance) bool {
		return !h.ids[i.GetInstanceId()] && !i.GetUpdateTime().AsTime().After(h.to)
	})
	if err != nil {
		return err
	}
	if n := len(h.starts); n > 0 && !r.URL.Query().Has(after) {
		v.Previous = r.URL.Path + "?" + url.Values{"span": {r.URL.Query().Get("span")}, "page": {strconv.Itoa(n)}}.Encode()
	}
	var lanes []lane
	for _, i := range hosts {
		l := life{id: i.GetInstanceId()}
		if since := v.Chart.within(i.GetCreateTime().AsTime()); h.to.After(since) {
			l.stays = []stay{{i.GetState(), since, h.to}}
		}
		lanes = append(lanes, v.Chart.host(l))
	}
	v.Chart.show(lanes)
	return nil
}

// read reads the history of a span until a time, or until now if that is zero, at most once in ten seconds.
func (p *page) read(ctx context.Context, span string, until time.Time) (*history, error) {
	question := recent.Question{Key: span + " " + until.UTC().String(), Now: p.Now(), Young: 10 * time.Second, Old: 30 * time.Second, Within: answerWithin}
	return p.histories.Get(ctx, question, func(ctx context.Context) (*history, error) {
		back, err := time.ParseDuration(span)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		req, to := eventsOf(back, until, question.Now), until
		var pools *remudav1.ListPoolsResponse // that of now say nothing of an earlier time
		var events *remudav1.ListEventsResponse
		reads, ctx := errgroup.WithContext(ctx)
		if until.IsZero() {
			to = question.Now
			reads.Go(func() (err error) { pools, err = p.listPools(ctx, question.Now, 0); return err })
		}
		reads.Go(func() (err error) {
			events, err = p.Fleet.ListEvents(ctx, req)
			return err
		})
		if err := reads.Wait(); err != nil {
			return nil, err
		}
		h := historyOf(events.GetEvents(), pools.GetPools(), events.GetFromTime().AsTime(), to)
		h.cut = question.Now.Sub(h.from) < req.GetSince().AsDuration()-time.Minute
		return h, nil
	})
}

// historyOf is what events say of hosts between two times. How many hosts did not change follows from how many there are now.
func historyOf(events []*remudav1.Event, pools []*remudav1.Pool, from, to time.Time) *history {
	h := &history{from: from, to: to, ids: map[string]bool{}, counts: newTally(from, to)}
	same := map[remudav1.State]int{}
	for _, pool := range pools {
		for _, c := range pool.GetCounts() {
			same[c.GetState()] += int(c.GetCount())
		}
	}
	c := &chart{From: from, To: to}
	ids, changes := changesOf(events)
	var parts []int
	for _, id := range ids {
		l := c.lifeOf(id, changes[id])
		for _, s := range l.stays {
			h.counts.add(1, s.state, s.from, s.to)
		}
		same[l.last(to)]--
		h.changed, parts, h.ids[id] = append(h.changed, l), append(parts, l.parts()), true
	}
	for _, state := range alive {
		n := max(0, same[state]) // the hosts are counted a moment before or after the events are read
		h.counts.add(n, state, from, to)
		h.same += n
	}
	h.starts = sections(parts)
	return h
}
