package page

import (
	"slices"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// life is what a host did in the time of a chart.
type life struct {
	id     string
	stays  []stay
	claims []time.Time
	ends   []time.Time
}

// stay is a time in one state.
type stay struct {
	state    remudav1.State
	from, to time.Time
}

// lifeOf reads the life of a host from its events, at least one, the oldest first. Times beyond those of the chart are moved to its edges.
func (c *chart) lifeOf(id string, events []*remudav1.Event) life {
	l := life{id: id}
	state, since := firstState(events), c.From
	leave := func(at time.Time) {
		if chartStates[state] != "" && at.After(since) {
			l.stays = append(l.stays, stay{state, since, at})
		}
	}
	for _, e := range events {
		at := c.within(e.GetEventTime().AsTime())
		if e.GetAction() == remudav1.Action_ACTION_CLAIM {
			l.claims = append(l.claims, at)
		}
		to := e.GetToState()
		if to == remudav1.State_STATE_UNSPECIFIED || to == state {
			continue
		}
		leave(at)
		if state, since = to, at; to == remudav1.State_STATE_TERMINATED {
			l.ends = append(l.ends, at)
		}
	}
	leave(c.To)
	return l
}

// firstState is the state of a host before its events.
func firstState(events []*remudav1.Event) remudav1.State {
	i := slices.IndexFunc(events, func(e *remudav1.Event) bool { return e.GetToState() != remudav1.State_STATE_UNSPECIFIED })
	return events[max(0, i)].GetFromState()
}

// last is the state of a host at the end of the chart; unspecified: it has ended.
func (l life) last(to time.Time) remudav1.State {
	if n := len(l.stays); n > 0 && l.stays[n-1].to.Equal(to) {
		return l.stays[n-1].state
	}
	return remudav1.State_STATE_UNSPECIFIED
}

// parts are how many its lane has.
func (l life) parts() int { return min(len(l.stays), mostInLane) }

// host is the lane of a host.
func (c *chart) host(h life) lane {
	l := lane{Name: h.id, Link: hostLink(h.id)}
	for _, s := range newest(h.stays) {
		l.Parts = append(l.Parts, c.part(chartStates[s.state], s.from, s.to))
	}
	for _, at := range newest(h.claims) {
		l.Claims = append(l.Claims, c.x(at))
	}
	for _, at := range h.ends {
		l.Ends = append(l.Ends, c.x(at))
	}
	return l
}

// newest are the last ones of a lane.
func newest[T any](all []T) []T { return all[max(0, len(all)-mostInLane):] }

// changesOf are the events of each host that changed, the oldest first, and these hosts, the one first that changed last.
func changesOf(events []*remudav1.Event) (hosts []string, byHost map[string][]*remudav1.Event) {
	byHost = map[string][]*remudav1.Event{}
	for _, e := range slices.Backward(events) {
		id := e.GetInstanceId()
		if id == "" {
			continue
		}
		known := byHost[id]
		if known == nil && e.GetToState() == remudav1.State_STATE_UNSPECIFIED {
			continue
		}
		if known == nil {
			hosts = append(hosts, id)
		}
		byHost[id] = append(known, e)
	}
	for _, all := range byHost {
		slices.Reverse(all)
	}
	return hosts, byHost
}
