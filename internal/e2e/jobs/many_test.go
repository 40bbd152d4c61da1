package jobs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
)

const (
	manyJobs  = 300
	manyHosts = 20
	// callsBar is how many calls of GitHub's API a job may cost.
	callsBar = 3
)

// TestThreeHundredJobs: they are queued at once for a pool of 20. The first 20
// stand at gates, so that all others are known before any of them is served; the
// webhook of the next one is lost, and controld learns of it after later ones. There
// are four Apps, since one may register 150 runners a minute and the hosts of this test
// are free more often.
func TestThreeHundredJobs(t *testing.T) {
	t.Parallel()
	s := newServed(t, 4, fmt.Sprintf(jobPool, manyHosts)+"sweeps:\n  cloud: 30s\n")
	began := time.Now()
	g := s.gates(manyHosts)
	held := ids(s.run("1001", workflow(manyHosts, onPool, g.step())))
	// Who looks for lost webhooks finds this one, but not before later ones have come.
	if err := s.GitHub.Delay(s.ctx, "GET /app/hook/deliveries", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.deliver(local.Webhooks{LoseEvery: 1})
	late := ids(s.run("1002", workflow(1, onPool, "'true'")))[0]
	s.deliver(local.Webhooks{})
	rest := ids(s.run("1003", workflow(256, onPool, "'true'")))
	rest = append(rest, ids(s.run("1004", workflow(manyJobs-manyHosts-1-256, onPool, "'true'")))...)
	order := slices.Concat(held, []int64{late}, rest)
	if len(order) != manyJobs || !slices.IsSorted(order) {
		t.Fatalf("%d jobs are queued, want %d in the order of their ids: %v", len(order), manyJobs, order)
	}

	most := 0
	census := func() { most = max(most, len(s.live())) }
	s.eventually(func() string { census(); return s.allStandAtGates(held, append(rest, late)) })
	full := time.Since(began)
	if given := len(s.log.moves("give")); given != manyHosts {
		t.Errorf("%d turns were given before a job ended, want %d", given, manyHosts)
	}
	waiting := s.log.heard(heardWaiting)
	if at := slices.Index(waiting, late); !slices.ContainsFunc(waiting[:at], func(id int64) bool { return id > late }) {
		t.Errorf("job %d was heard of before all later ones, and so was not late", late)
	}
	g.open(0)
	s.eventually(func() string {
		census()
		if len(s.log.moves("give")) == manyHosts {
			return "no turn was given for the host that is free again"
		}
		return ""
	})
	if next := s.log.moves("give")[manyHosts]; next != late {
		t.Errorf("the next turn was given for job %d, want %d, which was heard of late and has waited longest", next, late)
	}
	for n := 1; n < manyHosts; n++ {
		g.open(n)
	}
	s.succeeds(census, "1001", "1002", "1003", "1004")
	s.allOver(order)
	turns := s.log.moves("give")
	if len(turns) > manyJobs {
		s.spare(manyHosts, "1005", census)
	}
	s.atRest()
	s.nothingOpen()
	took := time.Since(began)

	if ever := len(s.hosts()); most > manyHosts || ever != manyHosts {
		t.Errorf("%d hosts at once and %d in all, want %d", most, ever, manyHosts)
	}
	inOrder(t, order, turns[manyHosts:])
	perJob := s.callsOfGitHub(manyJobs)
	t.Logf("%d jobs on %d hosts in %.1fs, of which %.1fs until the pool was full: %.2f GitHub calls per job, %d turns",
		manyJobs, manyHosts, took.Seconds(), full.Seconds(), perJob, len(turns))
	if perJob > callsBar {
		t.Errorf("%.2f GitHub calls per job, want at most %d", perJob, callsBar)
	}
}

func ids(run local.Run) []int64 {
	var list []int64
	for _, j := range run.Jobs {
		list = append(list, j.ID)
	}
	return list
}

// allStandAtGates: every host runs one of the jobs that are held, and says so,
// and every other job is known.
func (s *stage) allStandAtGates(held, others []int64) string {
	s.Helper()
	if missing := lacking(held, s.log.heard(heardRunning)); len(missing) > 0 {
		return fmt.Sprintf("jobs do not run, by GitHub's word: %v", missing)
	}
	if missing := lacking(others, s.log.heard(heardWaiting)); len(missing) > 0 {
		return fmt.Sprintf("jobs are not known: %v", missing)
	}
	return s.busy(manyHosts)
}

// lacking are those that are wanted and not there.
func lacking(want, there []int64) []int64 {
	var list []int64
	for _, id := range want {
		if !slices.Contains(there, id) {
			list = append(list, id)
		}
	}
	return list
}

// nothingOpen waits until every turn that was given has ended.
func (s *stage) nothingOpen() {
	s.Helper()
	s.eventually(func() string {
		if given, ended := len(s.log.moves("give")), len(s.log.moves("end")); given != ended {
			return fmt.Sprintf("%d turns were given and %d have ended", given, ended)
		}
		return ""
	})
}

// inOrder: turns were given in the order of the jobs. Turns are held against
// jobs by number and not by name, and a job that has just been taken may still
// be counted as waiting, so a name may be off by as much as the pool has hosts.
func inOrder(t *testing.T, order, given []int64) {
	t.Helper()
	furthest := 0
	for n, id := range given {
		place := slices.Index(order, id)
		if place < furthest-manyHosts {
			t.Errorf("turn %d was given for the job in place %d after that in place %d", n, place, furthest)
		}
		furthest = max(furthest, place)
	}
}

// callsOfGitHub is how many calls of GitHub's own API each job cost.
func (s *stage) callsOfGitHub(jobs int) float64 {
	s.Helper()
	calls, err := s.GitHub.Calls(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	sum := int64(0)
	for _, c := range calls {
		if c.OfGitHub() {
			sum += c.Count
			s.Logf("%5d %s %s", c.Count, c.Method, c.Route)
		}
	}
	return float64(sum) / float64(jobs)
}
