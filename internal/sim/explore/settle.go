package explore

import (
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// settlesWithin is the number of units within which everything has to be over: a run has
// three, a request, a release and the time in the pool have one each, and whatever just
// misses one waits for the next.
const settlesWithin = 16

// checkSettles checks that if both replicas crash now and start again, the sweeps alone
// bring everything to its end.
func (x *explorer) checkSettles(w world) {
	var passed []print
	for range settlesWithin {
		fp := x.worldPrint(&w)
		if x.settled[fp] {
			break
		}
		passed = append(passed, fp)
		w = x.agentsAct(w)
		w = x.sweepOnce(w)
		if x.rest(&w) == "" {
			break
		}
		w = x.pass(w)
		if len(passed) == settlesWithin {
			x.ports.broken("left over", "after a crash of both replicas and %d units of sweeps: %s", settlesWithin, x.rest(&w))
		}
	}
	for _, p := range passed {
		x.settled[p] = true
	}
	if len(passed) > 0 {
		x.report.Settled++
	}
}

// agentsAct lets every agent see its record and answer it.
func (x *explorer) agentsAct(w world) world {
	for host := range maxHosts {
		h, r, ok := x.acting(&w, host)
		if !ok {
			continue
		}
		h.busy = false
		if p, ok := h.reading(r, x.gone(&w, host, r), false); ok {
			h, p = h.reads(p, r).answers()
			w[reportCell+cell(host)] = x.values.id(p)
		}
		w[agentCell+cell(host)] = x.values.id(h)
	}
	return w
}

// sweepSteps is more steps than one sweep can have reason to make.
const sweepSteps = 1000

func (x *explorer) sweepOnce(w world) world {
	w[crowdCell] = crowd(0, 1)
	n := x.sweeps.start
	for range sweepSteps {
		out := x.step(n, &w, false)
		w = out.on(w)
		if n = out.next; n == nil {
			w[crowdCell] = 0
			return w
		}
	}
	x.ports.broken("restless", "a sweep made %d steps", sweepSteps)
	return w
}

// rest says what is still there, or returns "" when nothing lives, nothing is due and every
// request has its outcome.
func (x *explorer) rest(w *world) string {
	var rest []string
	there, _ := at[cloud](x.values, w, cloudCell)
	for host := range maxHosts {
		r, ok := at[lifecycle.Record](x.values, w, instanceCell+cell(host))
		if !ok {
			continue
		}
		if r.State != lifecycle.StateTerminated || !r.DueAt.IsZero() {
			rest = append(rest, fmt.Sprintf("%s is %s", r.HostKey, r.Condition()))
		}
		if m := there.machines[host]; m.State != lifecycle.MachineGone {
			rest = append(rest, fmt.Sprintf("machine %s is %s", m.HostKey, m.State))
		}
	}
	for i := range maxAsks {
		q, ok := at[lifecycle.Request](x.values, w, requestCell+cell(i))
		if ok && (!q.Settled() || !q.DueAt.IsZero()) {
			rest = append(rest, fmt.Sprintf("request %s has outcome %q", q.RequestID, q.Outcome))
		}
	}
	return strings.Join(rest, ", ")
}
