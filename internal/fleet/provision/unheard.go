package provision

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// cloudLookAfter is how often a waiting request asks the cloud for the hosts whose agent
// has never reported. A shorter interval spends EC2's request limits; a longer one lets
// a request wait for a machine that died while it booted.
const cloudLookAfter = 15 * time.Second

// unheard are the new hosts whose agent has not reported yet. No sweep checks them
// before their threshold, since only the cloud knows their state.
func (p *Provision) unheard() []lifecycle.Record {
	var records []lifecycle.Record
	for _, key := range p.unready() {
		if _, heard := p.reports[key]; !heard && p.hosts[key].State == lifecycle.StateCreated {
			records = append(records, p.hosts[key])
		}
	}
	return records
}

// cloudLook reports whether it is time to ask the cloud, and sets the next time. The
// answer to the first call is false: no agent can have reported by then.
func (p *Provision) cloudLook(now time.Time) bool {
	first := p.askCloud.IsZero()
	if !first && now.Before(p.askCloud) {
		return false
	}
	p.askCloud = now.Add(cloudLookAfter)
	return !first
}

// lookForDead notes which of the unheard hosts have lost their machine. The decisions
// that follow in this round use it.
func (p *Provision) lookForDead(ctx context.Context, unheard []lifecycle.Record, now time.Time) {
	machines, err := p.env.Hosts.Describe(ctx, unheard, now)
	if err != nil {
		p.env.Log.Warn("EC2 does not answer; deciding without it", logkey.Error, err)
		return
	}
	for _, r := range unheard {
		if m, ok := machines[r.InstanceID]; ok && m.State == lifecycle.MachineGone {
			p.dead[r.HostKey] = m
		}
	}
}
