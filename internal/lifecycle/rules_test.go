package lifecycle_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// seen is one scene with what Decide made of it, and the questions of the
// rules answered from the words of the scene rather than by the code under test.
type seen struct {
	scene
	base string // the host without what stands after the comma
	got  lifecycle.Decision
	// decided has the answers to all scenes of the host.
	decided *decided
}

func (s *seen) is(hosts ...string) bool {
	return slices.Contains(hosts, s.base) || slices.Contains(hosts, s.host)
}

func (s *seen) reported() bool { return s.answer != "none" }
func (s *seen) jobRuns() bool  { return s.reported() && s.busy == "busy" }

// mayWork: a silent host that serves a run may run a job.
func (s *seen) mayWork() bool {
	return s.jobRuns() || !s.reported() && strings.HasPrefix(s.host, "running")
}
func (s *seen) jobScoped() bool { return strings.Contains(s.host, "job-scoped") }
func (s *seen) noticed() bool {
	return s.reported() && s.notice == "interrupted" || strings.Contains(s.host, "announced to controld")
}

// replaced: another host is requested in its place before anything else is done.
func (s *seen) replaced() bool { return s.does(lifecycle.ActionReplace) }
func (s *seen) fell() bool     { return s.reported() && s.beat == "silent" }

// excused: the host misses a deadline, and it is our fault, or may be, that it is not heard.
func (s *seen) excused() bool {
	ours := s.reported() && (s.beat == "unwatched" || s.beat == "mass") && s.is("created", "claimed", "releasing", "draining")
	return (ours || s.reportLost()) && s.deadline == "reached"
}

// reportLost: there is no report, and the host must have written one.
func (s *seen) reportLost() bool {
	return !s.reported() && s.is("claimed", "releasing") && !strings.HasPrefix(s.host, "releasing, fresh")
}
func (s *seen) spoke() bool  { return s.reported() && s.beat == "fresh" }
func (s *seen) held() bool   { return s.hold == "held" && !s.is("terminated") }
func (s *seen) gone() bool   { return s.cloud == "gone" || s.cloud == "unshown" && s.longEnded() }
func (s *seen) late() bool   { return s.deadline != "ahead" }
func (s *seen) wanted() bool { return s.request == "unknown" || s.request == "wanted" }
func (s *seen) ends() bool   { return s.got.Action == lifecycle.ActionTerminate }
func (s *seen) does(a lifecycle.Action) bool {
	return s.got.Action == a
}

func (s *seen) endsOrIsReplaced() bool { return s.ends() || s.replaced() }

// hotClaim: the host was claimed while its runner listened, or while it was about to.
func (s *seen) hotClaim() bool {
	return strings.HasPrefix(s.host, "claimed, hot") || s.host == "claimed, warming"
}

// standsBy: the host is pooled, with a registration ahead of need.
func (s *seen) standsBy() bool {
	return strings.HasPrefix(s.host, "pooled, warming") || strings.HasPrefix(s.host, "pooled, hot")
}

// listens: the agent says that the runner listens, under the assignment of the record, or of the registration that a
// hot host was claimed with.
func (s *seen) listens() bool {
	return s.spoke() && (s.answer == "UD_REG_OK" || s.hotClaim() && s.answer == "old UD_REG_OK")
}

// lostStandby: the registration of a host that was claimed while it listened cannot be used.
func (s *seen) lostStandby() bool {
	return s.hotClaim() && (s.host == "claimed, hot, runner gone" || strings.HasPrefix(s.answer, "UD_REG_FAILED"))
}

// answers: the report speaks of the record's assignment.
func (s *seen) answers() bool { return s.reported() && !strings.HasPrefix(s.answer, "old ") }

// ec2Confirms: EC2's own word that a silent machine will not come back.
func (s *seen) ec2Confirms() bool {
	return s.fell() && (s.cloud == "impaired" || s.cloud == "ending")
}

// unsettled: alive, and neither an operator nor EC2 has settled what happens.
func (s *seen) unsettled() bool {
	return !s.is("terminated") && !s.held() && !s.gone() && !s.ec2Confirms()
}

// older: the agent reports for an assignment that the record does not have.
func (s *seen) older() bool { return strings.HasPrefix(s.answer, "newer ") }

// longEnded: the host ended so long ago that EC2 need not show its machine any more.
func (s *seen) longEnded() bool { return s.is("terminated") && s.host != "terminated, 59m ago" }

// unheard: the agent had no time to report yet.
func (s *seen) unheard() bool { return s.beat == "unheard" }

// open: unsettled, and the record is no restored one, for what is known.
func (s *seen) open() bool { return s.unsettled() && !s.older() && !s.unheard() }

// runtimeOver: the job on this host has had its whole runtime.
func (s *seen) runtimeOver() bool {
	if s.is("running", "draining") {
		return s.late()
	}
	if s.host == "pooled, hot for a day" {
		return true
	}
	return s.deadline == "overrun"
}

func (s *seen) external() bool {
	return s.answer == "UD_REMOVE_REG_FAILED:github" || s.answer == "UD_REMOVE_REG_FAILED:aws"
}

func (s *seen) ownFault(signal string) bool {
	return s.answer == signal || s.answer == signal+":host"
}

// rule is one sentence of docs/design.md#the-lifecycle: where it applies, and what it asks.
type rule struct {
	name string
	when func(*seen) bool
	then func(*seen) bool
}

// TestRules holds the answer to every combination of facts against the rules.
func TestRules(t *testing.T) {
	all := slices.Concat(generalRules, endRules, stateRules, standbyRules)
	applied := make([]atomic.Bool, len(all))
	t.Run("hosts", func(t *testing.T) {
		for _, host := range hostNames() {
			t.Run(host, func(t *testing.T) {
				t.Parallel()
				holdAgainst(t, host, all, applied)
			})
		}
	})
	for i, r := range all {
		if !applied[i].Load() {
			t.Errorf("rule never applied: %s", r.name)
		}
	}
}

func holdAgainst(t *testing.T, host string, all []rule, applied []atomic.Bool) {
	const shown = 5
	broken, index := 0, -1
	base, _, _ := strings.Cut(host, ",")
	s := &seen{base: base, decided: decidedOf(host)}
	everyScene(host, func(sc scene) {
		if index++; sc.common() {
			return
		}
		s.scene, s.got = sc, s.decided.answers[s.decided.given[index]]
		for i, r := range all {
			if !r.when(s) {
				continue
			}
			if !applied[i].Load() {
				applied[i].Store(true)
			}
			if r.then(s) {
				continue
			}
			if broken++; broken <= shown {
				t.Errorf("%s\n  in   %s\n  got  %s", r.name, s.scene, outcome(s.got))
			}
		}
	})
	if broken > shown {
		t.Errorf("%d broken rules in all", broken)
	}
}

// common: a host of a special kind in a scene that the plain host has as well,
// since its hold or EC2 decides it. Leaving these out saves half of the time.
func (s scene) common() bool {
	return strings.Contains(s.host, ",") && (s.hold == "held" || s.cloud == "running" || s.cloud == "ending")
}

// sampled is a quarter of the scenes, for the rules that cost a second call.
func (s *seen) sampled() bool { return s.notice == "-" && (s.beat == "fresh" || s.beat == "silent") }

func always(*seen) bool { return true }

// same reports whether Decide answers alike when one word of the scene is another.
func (s *seen) same(change func(*scene)) bool {
	other := s.scene
	change(&other)
	return s.got == s.decided.at(other)
}
