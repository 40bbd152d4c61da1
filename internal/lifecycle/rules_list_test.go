package lifecycle_test

import (
	"strings"
	"time"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var generalRules = []rule{
	{"the reason is one clean sentence without secrets", always, func(s *seen) bool {
		return strings.TrimSpace(s.got.Reason) == s.got.Reason && s.got.Reason != "" &&
			strings.IndexFunc(s.got.Reason, unicode.IsControl) < 0 && !strings.Contains(s.got.Reason, token)
	}},
	{"who keeps says when to look next", func(s *seen) bool { return s.does(lifecycle.ActionKeep) }, func(s *seen) bool {
		return s.got.CheckAt.After(now) != s.is("terminated, forgotten")
	}},
	{"a call to the world outside is looked after", func(s *seen) bool {
		return s.does(lifecycle.ActionEndMachine) || s.does(lifecycle.ActionDeleteRunner)
	}, func(s *seen) bool { return s.got.CheckAt.After(now) }},
	{"Apply carries out what Decide says, and dueAt lies at or before the threshold", (*seen).sampled, func(s *seen) bool {
		f, p := s.facts()
		r, err := lifecycle.Apply(f.Record, s.got, now, p)
		changed := lifecycle.Allowed(f.Record, s.got.Action)
		return err == nil && (!changed || r.Threshold.IsZero() || !r.DueAt.After(r.Threshold))
	}},
	{"a signal of another assignment is no signal", func(s *seen) bool {
		return strings.HasPrefix(s.answer, "old ") && !(s.hotClaim() && s.answer == "old UD_REG_OK")
	},
		func(s *seen) bool { return s.same(func(o *scene) { o.answer = "old seen" }) }},
	{"an unknown cloud is not a sick one", func(s *seen) bool { return s.cloud == "unknown" && !s.is("terminated") },
		func(s *seen) bool { return s.same(func(o *scene) { o.cloud = "running" }) }},
	{"an unknown request is not an unwanted one", func(s *seen) bool {
		return s.request == "unknown" && !strings.Contains(s.host, "unattended") && !s.is("running, to be replaced")
	}, func(s *seen) bool { return s.same(func(o *scene) { o.request = "wanted" }) }},
	{"no host is silent while the store was not watched", func(s *seen) bool { return s.beat == "unwatched" || s.unheard() || s.beat == "mass" },
		func(s *seen) bool { return !strings.HasPrefix(s.got.Reason, "silent") }},
	{"without a report nothing that only the agent can know is believed", func(s *seen) bool { return !s.reported() && s.open() },
		func(s *seen) bool {
			return !s.does(lifecycle.ActionReady) && !s.does(lifecycle.ActionPool) && !s.does(lifecycle.ActionReleaseClock) &&
				(!s.does(lifecycle.ActionRelease) || s.got.Busy) && !strings.HasPrefix(s.got.Reason, "silent")
		}},
	{"nothing is decided on GitHub's word while a host lives", func(s *seen) bool {
		return !s.is("terminated") && !s.hotClaim() && s.sampled()
	},
		func(s *seen) bool {
			f, p := s.facts()
			f.Runner = &lifecycle.Runner{Busy: !s.jobRuns(), Gone: true}
			return s.got == lifecycle.Decide(f, now, p)
		}},
}

// endRules say what ends a host, and what does not.
var endRules = []rule{
	{"nothing ends a held host but the loss of its machine", func(s *seen) bool { return s.held() && !s.gone() },
		func(s *seen) bool { return !s.ends() }},
	{"a held host goes on as if it were not, but for its end", func(s *seen) bool { return s.held() && s.sampled() },
		func(s *seen) bool {
			f, p := s.facts()
			f.Record.Hold = time.Time{}
			free := lifecycle.Decide(f, now, p)
			return s.got == free || free.Action == lifecycle.ActionTerminate
		}},
	{"a host whose machine is gone is ended, held or not", func(s *seen) bool { return s.gone() && !s.is("terminated") },
		(*seen).endsOrIsReplaced},
	{"a running interrupted host that its run wants is replaced first, once and if asked for", func(s *seen) bool { return !s.is("terminated") },
		func(s *seen) bool {
			return s.replaced() == (s.is("running, to be replaced") && s.noticed() && s.request == "wanted" && !s.late())
		}},
	{"only what runs no job is deregistered before its end, and only for an interruption", func(s *seen) bool { return s.got.Deregister },
		func(s *seen) bool {
			return s.ends() && s.noticed() && !s.jobRuns() && (!s.is("pooled") || s.standsBy())
		}},
	{"a job is lost with the machine that EC2 announced to take", func(s *seen) bool { return !s.jobScoped() },
		func(s *seen) bool {
			lost := s.noticed() && s.jobRuns() && (s.gone() || s.ec2Confirms() && !s.held()) && s.is("created", "claimed", "running") && !s.replaced()
			return s.got.LostJob == lost
		}},
	{"a busy host is ended only by its runtime or the loss of its machine", func(s *seen) bool { return s.jobRuns() && s.open() },
		func(s *seen) bool { return !s.ends() || s.runtimeOver() }},
	{"a busy host ends once its runtime is over, if it never was ready or drains too long", func(s *seen) bool {
		return s.jobRuns() && s.open() && s.runtimeOver() && !s.listens() && !s.is("releasing") &&
			s.host != "pooled, hot for a day" // it deregisters, and drains
	}, (*seen).ends},
	{"silence that EC2 confirms ends any host", func(s *seen) bool {
		return s.ec2Confirms() && !s.is("terminated") && !s.held()
	}, (*seen).endsOrIsReplaced},
	{"an interrupted host is ended when no job can run on it", func(s *seen) bool { return s.noticed() && !s.mayWork() && s.unsettled() },
		(*seen).endsOrIsReplaced},
	{"an interrupted host that may run a job is not ended before its time", func(s *seen) bool {
		return s.noticed() && s.mayWork() && !s.reported() && s.open() && !s.late()
	}, func(s *seen) bool { return !s.ends() }},
	{"an interrupted host does not become ready when not busy, nor is it pooled", (*seen).noticed, func(s *seen) bool {
		return !s.does(lifecycle.ActionPool) && (!s.does(lifecycle.ActionReady) || s.jobRuns())
	}},
	{"silence ends created, claimed and idle hosts", func(s *seen) bool {
		return s.fell() && !s.jobRuns() && s.open() && !s.is("running")
	}, (*seen).ends},
	{"silence does not matter to a running host without EC2's word", func(s *seen) bool {
		return s.fell() && s.open() && s.is("running")
	}, func(s *seen) bool { return s.same(func(o *scene) { o.beat = "fresh" }) }},
	{"the threshold ends a host that is not busy, unless it answers or GitHub or AWS hold it up", func(s *seen) bool {
		answered := s.answer == "UD_REMOVE_REG_OK" && s.spoke() && s.is("releasing", "draining") ||
			strings.HasPrefix(s.answer, "UD_REG_FAILED") && s.is("claimed") ||
			s.external() && s.is("releasing") || s.lostStandby() && s.wanted() && !s.fell() && !s.noticed()
		return s.late() && !s.jobRuns() && s.open() && !answered && !s.excused()
	}, (*seen).ends},
	{"a deadline that is missed for want of a report ends no host while many may be silent, or when the report was lost", func(s *seen) bool {
		return s.excused() && !s.gone() && !s.noticed() && s.wanted() && (s.answer == "seen" || s.reportLost()) && !s.jobRuns()
	}, func(s *seen) bool { return !s.ends() }},
	{"the maximum runtime ends a running host, busy or not", func(s *seen) bool { return s.late() && s.is("running") && s.open() },
		(*seen).ends},
	{"a host whose record is older than what it does is marked first, whatever the record says", func(s *seen) bool {
		return s.older() && (s.unsettled() || s.held() && !s.gone() && !s.ec2Confirms()) && !(s.noticed() && !s.mayWork())
	}, func(s *seen) bool {
		return s.does(lifecycle.ActionRetire) && s.got.Code == lifecycle.ReasonRecordRestored || s.replaced()
	}},
	{"nothing else marks a host", func(s *seen) bool { return s.does(lifecycle.ActionRetire) }, (*seen).older},
	{"a run that was released leaves a running host whose agent had no time to report yet", func(s *seen) bool {
		return s.unheard() && s.is("running") && s.unsettled() && !s.older() && !s.wanted() && !s.noticed()
	}, func(s *seen) bool { return s.does(lifecycle.ActionRelease) }},
	{"nothing but the loss of its machine ends a host whose agent had no time to report yet", func(s *seen) bool {
		return s.unheard() && s.unsettled() && !(s.noticed() && !s.mayWork())
	}, func(s *seen) bool { return !s.ends() }},
	{"terminated stays terminated, and is forgotten only when EC2 confirms", func(s *seen) bool { return s.is("terminated") },
		func(s *seen) bool {
			switch s.got.Action {
			case lifecycle.ActionKeep, lifecycle.ActionEndMachine:
				return !s.gone() || s.is("terminated, forgotten")
			case lifecycle.ActionDeleteRunner:
				return s.gone() && (s.host == "terminated" || s.host == "terminated, 59m ago")
			case lifecycle.ActionForget:
				return s.gone() && s.host != "terminated" && s.host != "terminated, 59m ago" && s.host != "terminated, forgotten"
			}
			return false
		}},
	{"EC2 is told until it agrees", func(s *seen) bool {
		return s.is("terminated") && (s.cloud == "unknown" || s.cloud == "running" || s.cloud == "impaired") && !s.is("terminated, forgotten")
	}, func(s *seen) bool { return s.does(lifecycle.ActionEndMachine) }},
}

// stateRules say what each transition that is not an end needs, and that it
// happens when it has it.
var stateRules = []rule{
	{"ready needs UD_REG_OK of this assignment, or of a hot host's registration, and a fresh heartbeat", func(s *seen) bool { return s.does(lifecycle.ActionReady) },
		func(s *seen) bool { return s.is("created", "claimed") && s.listens() }},
	{"UD_REG_OK and a fresh heartbeat make a wanted host ready", func(s *seen) bool {
		return s.is("created", "claimed") && s.open() && s.listens() && (s.jobRuns() || !s.lostStandby()) &&
			(s.jobRuns() || s.wanted() && !s.late() && !s.noticed())
	}, func(s *seen) bool { return s.does(lifecycle.ActionReady) }},
	{"an unwanted host does not become ready before its first job", func(s *seen) bool { return !s.wanted() && !s.jobRuns() },
		func(s *seen) bool { return !s.does(lifecycle.ActionReady) }},
	{"an unwanted created host ends, an unwanted claimed one goes back to the pool", func(s *seen) bool {
		return !s.wanted() && s.open() && !s.jobRuns() && s.is("created", "claimed")
	}, func(s *seen) bool { return s.ends() || s.is("claimed") && s.does(lifecycle.ActionReturn) }},
	{"an unwanted running host is released; it drains unless known not to be busy", func(s *seen) bool {
		return !s.wanted() && s.open() && s.is("running") && !s.late() && (s.jobRuns() || !s.noticed())
	}, func(s *seen) bool {
		return s.does(lifecycle.ActionRelease) && s.got.Busy == (s.jobRuns() || !s.reported())
	}},
	{"a wanted busy host stays with its run", func(s *seen) bool {
		return s.wanted() && s.open() && s.is("running") && !s.late() && s.jobRuns()
	}, func(s *seen) bool { return s.does(lifecycle.ActionKeep) || s.replaced() }},
	{"only a request without a waiting caller gives up a ready host without a job after 5 m", func(s *seen) bool {
		return s.is("running") && s.wanted() && !strings.HasPrefix(s.answer, "UD_REG_FAILED") && s.does(lifecycle.ActionRelease) &&
			!s.is("running, job-scoped, had its job")
	}, func(s *seen) bool {
		return s.is("running, unattended 5m", "running, job-scoped, unattended 5m") && s.reported() && !s.jobRuns()
	}},
	{"a job-scoped host whose one job is over is released, and what else became of its runner does not matter", func(s *seen) bool {
		return s.is("running, job-scoped, had its job") && s.open() && s.wanted() && !s.late() && s.answers() && !s.jobRuns() && !s.noticed()
	}, func(s *seen) bool {
		return s.does(lifecycle.ActionRelease) && s.got.Reason == "its one job is done" && !s.got.Busy
	}},
	{"a job of the assignment before does not release a job-scoped host", func(s *seen) bool {
		return s.is("running, job-scoped, had its job") && s.wanted() && !s.answers()
	}, func(s *seen) bool { return !s.does(lifecycle.ActionRelease) }},
	{"a running job-scoped host is looked at every 30 s, however long it may run", func(s *seen) bool {
		return s.jobScoped() && !s.held() && (s.is("running") && s.does(lifecycle.ActionKeep) || s.does(lifecycle.ActionReady))
	}, func(s *seen) bool { return !s.got.CheckAt.IsZero() && !s.got.CheckAt.After(now.Add(30*time.Second)) }},
	{"one whose job was over before it was ready is looked at at once", func(s *seen) bool {
		return s.host == "claimed, job-scoped, had its job" && s.does(lifecycle.ActionReady) && !s.jobRuns()
	}, func(s *seen) bool { return s.got.CheckAt.Equal(now) }},
	{"a job-scoped host is never given a remove token", (*seen).jobScoped, func(s *seen) bool { return !s.does(lifecycle.ActionProvideToken) }},
	{"pooling needs UD_REMOVE_REG_OK of this assignment, a fresh heartbeat, and rules that allow it", func(s *seen) bool {
		return s.does(lifecycle.ActionPool)
	}, func(s *seen) bool {
		return s.is("releasing", "draining") && s.answer == "UD_REMOVE_REG_OK" && s.spoke() && !s.jobRuns() &&
			!s.is(leaving...)
	}},
	{"a clean host is pooled, or ended by its pool's rules", func(s *seen) bool {
		return s.is("releasing", "draining") && s.open() && s.answer == "UD_REMOVE_REG_OK" && s.spoke() && !s.jobRuns() && !s.noticed() && !s.is(unjudged)
	}, func(s *seen) bool {
		return s.ends() == s.is(leaving...) &&
			(s.ends() || s.does(lifecycle.ActionPool))
	}},
	{"a clean host whose run GitHub did not judge serves no other, and stays until it is asked", func(s *seen) bool {
		return s.is(unjudged) && s.open() && s.answer == "UD_REMOVE_REG_OK" && s.spoke() && !s.jobRuns() && !s.noticed()
	}, func(s *seen) bool { return s.got.Judges && s.does(lifecycle.ActionKeep) }},
	{"the first failure of a claim returns the host, the second that is its own ends it", func(s *seen) bool {
		return s.is("claimed") && s.open() && !s.jobRuns() && !s.noticed() && !s.fell() && strings.HasPrefix(s.answer, "UD_REG_FAILED") &&
			!(s.hotClaim() && s.wanted())
	}, func(s *seen) bool {
		own := s.ownFault("UD_REG_FAILED")
		if own && s.is("claimed, failed before") {
			return s.ends()
		}
		return s.does(lifecycle.ActionReturn) && s.got.HostFault == own
	}},
	{"a failure of GitHub or AWS does not end a starting host", func(s *seen) bool {
		return s.host == "created" && (s.answer == "UD_REG_FAILED:github" || s.answer == "UD_REG_FAILED:aws")
	}, func(s *seen) bool { return s.same(func(o *scene) { o.answer = "seen" }) }},
	{"a failure of its own ends a starting host", func(s *seen) bool {
		return s.host == "created" && s.open() && !s.jobRuns() && (s.answer == "UD_FAILED" || s.ownFault("UD_REG_FAILED"))
	}, (*seen).ends},
	{"GitHub or AWS may hold up a release for 30 m", func(s *seen) bool {
		return s.is("releasing") && s.open() && !s.jobRuns() && !s.noticed() && !s.fell() && s.external()
	}, func(s *seen) bool { return s.ends() == s.is("releasing, for 30m") }},
	{"a failed clean-up of its own ends a host", func(s *seen) bool {
		return s.is("releasing") && s.open() && !s.jobRuns() && s.ownFault("UD_REMOVE_REG_FAILED")
	}, (*seen).ends},
	{"a fresh host whose pre-runner script failed ends, and no other host that is becoming clean does for that", func(s *seen) bool {
		return s.is("releasing") && s.open() && !s.jobRuns() && !s.noticed() && !s.fell() && !s.late() && s.answer == "UD_FAILED"
	}, func(s *seen) bool {
		return s.ends() == strings.HasPrefix(s.host, "releasing, fresh")
	}},
	{"a host released while busy drains", func(s *seen) bool {
		return s.is("releasing", "draining") && s.open() && s.jobRuns() && !s.runtimeOver()
	}, func(s *seen) bool {
		return s.does(lifecycle.ActionDrain) == s.is("releasing") && (s.is("releasing") || s.does(lifecycle.ActionKeep))
	}},
	{"the clock of a drained host starts at the first not-busy report of this assignment", func(s *seen) bool {
		return s.does(lifecycle.ActionReleaseClock)
	}, func(s *seen) bool {
		return s.is("draining") && s.reported() && !s.jobRuns() && !strings.HasPrefix(s.answer, "old ")
	}},
	{"only a host with a registration and without a good token is given one", func(s *seen) bool {
		return s.does(lifecycle.ActionProvideToken)
	}, func(s *seen) bool { return s.is("releasing, no token", "releasing, token expired") }},
	{"a retiring pooled host ends", func(s *seen) bool {
		return s.is("pooled, retiring", "pooled, drifted and retiring") && s.open() && !s.jobRuns()
	}, (*seen).ends},
	{"a pooled host ends at its maximum age, and is looked at by then", func(s *seen) bool {
		return s.is("pooled, at its maximum age", "pooled, soon at its maximum age") && s.open() && !s.jobRuns() && !s.late() && !s.noticed() && !s.fell()
	}, func(s *seen) bool {
		return s.ends() == s.is("pooled, at its maximum age") && (s.ends() || s.got.CheckAt.Equal(now.Add(2*time.Minute)))
	}},
	{"drift ends no pooled host before the sweep has chosen it", func(s *seen) bool { return s.host == "pooled, drifted" && s.sampled() },
		func(s *seen) bool { return s.same(func(o *scene) { o.host = "pooled" }) }},
	{"neither age nor drift matters to a host that serves its run", func(s *seen) bool {
		return s.is("running, drifted and at its maximum age") && s.sampled()
	}, func(s *seen) bool { return s.same(func(o *scene) { o.host = "running" }) }},
}

// leaving are the hosts that the rules of their pool keep from being pooled.
var leaving = []string{
	"releasing, retiring", "releasing, reuse none", "releasing, docker not kept", "releasing, uses 3 of 3", "releasing, at its maximum age", "releasing, drifted",
}

// unjudged is a host that a run had in a pool with a cache of docker.
const unjudged = "releasing, docker not judged"

// standbyRules say what a registration ahead of need is good for.
var standbyRules = []rule{
	{"only a pooled host that registers becomes hot, by UD_REG_OK of this assignment and a fresh heartbeat", func(s *seen) bool {
		return s.does(lifecycle.ActionStandBy)
	}, func(s *seen) bool {
		return strings.HasPrefix(s.host, "pooled, warming") && s.answer == "UD_REG_OK" && s.spoke() && !s.jobRuns()
	}},
	{"a pooled host that listens becomes hot", func(s *seen) bool {
		return strings.HasPrefix(s.host, "pooled, warming") && s.open() && s.answer == "UD_REG_OK" && s.spoke() && !s.jobRuns() && !s.late() && !s.noticed()
	}, func(s *seen) bool { return s.does(lifecycle.ActionStandBy) }},
	{"a registration ahead of need is left when it failed permanently, took 2 m, or is a day old, and not beside a job", func(s *seen) bool {
		return strings.HasPrefix(s.host, "pooled") && s.open() && !s.late() && !s.noticed() && !s.fell()
	}, func(s *seen) bool {
		failed := s.standsBy() && strings.HasPrefix(s.answer, "UD_REG_FAILED") && !(s.host == "pooled, warming" && s.answer == "UD_REG_FAILED:github")
		slow := s.host == "pooled, warming for 2m" && !(s.answer == "UD_REG_OK" && s.spoke())
		left := !s.jobRuns() && (failed || slow) || s.host == "pooled, hot for a day" // longer than any job may run
		return s.does(lifecycle.ActionLeaveStandby) == left && s.got.StandbyFailed == (left && (failed || slow))
	}},
	{"nothing but a pooled host leaves its registration ahead of need", func(s *seen) bool { return s.does(lifecycle.ActionLeaveStandby) },
		func(s *seen) bool {
			return s.standsBy() && (!s.jobRuns() || s.host == "pooled, hot for a day")
		}},
	{"a host that was claimed while it listened is not ready before its labels are set", func(s *seen) bool {
		return s.does(lifecycle.ActionReady)
	}, func(s *seen) bool { return s.got.SetLabels == (s.hotClaim() && s.host != "claimed, hot, labels set") }},
	{"labels are set for nothing else", func(s *seen) bool { return s.got.SetLabels },
		func(s *seen) bool { return s.does(lifecycle.ActionReady) && s.hotClaim() }},
	{"a host whose registration was lost registers for its run", func(s *seen) bool {
		return s.lostStandby() && s.open() && s.wanted() && !s.jobRuns() && !s.noticed() && !s.fell()
	}, func(s *seen) bool { return s.does(lifecycle.ActionReregister) }},
	{"no other host does, and none beside a job", func(s *seen) bool { return s.does(lifecycle.ActionReregister) },
		func(s *seen) bool { return s.lostStandby() && !s.jobRuns() && s.wanted() }},
	{"a claim of a host that has to register after all is as any other", func(s *seen) bool {
		return s.host == "claimed, discarding" && s.sampled()
	}, func(s *seen) bool { return s.same(func(o *scene) { o.host = "claimed" }) }},
	{"a run that is served by a registration ahead of need is as any other", func(s *seen) bool {
		return s.host == "running, hot" && s.sampled()
	}, func(s *seen) bool { return s.same(func(o *scene) { o.host = "running" }) }},
	{"a clean host stands by if its pool says so", func(s *seen) bool { return s.does(lifecycle.ActionPool) },
		func(s *seen) bool { return s.got.StandsBy == (s.host == "releasing, to listen") }},
}
