package sim

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// noticePort is the queue of notices as a replica reaches it. A received notice is not
// hidden from other replicas, so most notices are handled more than once.
type noticePort struct{ w *world }

func (p noticePort) Receive(context.Context) ([]lifecycle.NoticeDelivery, error) {
	var got []lifecycle.NoticeDelivery
	err := queuePort(p).call("receive notices", func() error {
		got = slices.Clone(p.w.notices)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (p noticePort) Delete(_ context.Context, handles ...string) error {
	return queuePort(p).call("delete notices", func() error {
		p.w.notices = slices.DeleteFunc(p.w.notices, func(d lifecycle.NoticeDelivery) bool { return slices.Contains(handles, d.Handle) })
		return nil
	})
}

// announce puts an interruption into the queue of notices, a while after the host has seen
// it.
func (w *world) announce(instanceID string) {
	n := lifecycle.Notice{InstanceID: instanceID, Kind: lifecycle.NoticeInterruption, At: w.now}
	w.after(w.between(0, 3*time.Minute), func() {
		w.tell("ec2", "announces", instanceID)
		w.announced++
		w.notices = append(w.notices, lifecycle.NoticeDelivery{Notice: n, Handle: strconv.Itoa(w.announced)})
	})
}

// handleNotices makes a replica handle notices, whether it has the lease of the sweeps or not: that
// only one replica does so saves calls and nothing else.
func (r *replica) handleNotices() {
	w := r.w
	var round *fleet.NoticeRound
	failures := 0
	w.spawn(&actor{name: r.name + " notices", proc: r.proc, step: func() (time.Time, bool) {
		if round == nil {
			round = r.fleet.NewNoticeRound()
		}
		p, err := round.Step(background, r.clock())
		w.checkError("notices", err)
		switch {
		case err != nil:
			failures++
			round = nil
			return w.now.Add(w.backoff(failures)), false
		case p.Done:
			round, failures = nil, 0
			return w.now.Add(w.between(5*time.Second, 20*time.Second)), false
		}
		return w.now.Add(p.Wait + w.latency()), false
	}})
}
