package bench_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
)

// snapshotOf is a snapshot of so many hosts of 50 owners, each with its
// registration, without white space.
func snapshotOf(tb testing.TB, hosts int) []byte {
	tb.Helper()
	idle := false
	s := policy.Snapshot{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for n := range hosts {
		id, owner := fmt.Sprintf("i-%017x", n), fmt.Sprintf("acme-%d", n%50)
		s.Instances = append(s.Instances, policy.SnapshotInstance{State: "running", Candidate: policy.Candidate{
			InstanceID: id, LaunchedAt: s.Now.Add(-time.Hour), Owner: owner, Scope: "org", OS: "linux", AgentBusy: &idle, AgentSeenAt: s.Now,
		}})
		s.Runners = append(s.Runners, policy.SnapshotRunner{Listed: true, Runner: policy.Runner{
			ID: int64(n + 1), Name: "remuda-1-" + id, Owner: owner, Status: "online",
		}})
	}
	data, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// plan reads a snapshot and decides about its hosts, as `controld plan` does.
func plan(tb testing.TB, data []byte, hosts int) {
	tb.Helper()
	s, err := policy.ParseSnapshot(data)
	if err != nil {
		tb.Fatal(err)
	}
	if verdicts := s.Plan(); len(verdicts) != hosts {
		tb.Fatalf("%d verdicts, want %d", len(verdicts), hosts)
	}
}

// BenchmarkPlan is a plan of 10,000 hosts. Its allocations are also reported as a
// multiple of the file.
func BenchmarkPlan(b *testing.B) {
	const hosts = 10_000
	data := snapshotOf(b, hosts)
	b.SetBytes(int64(len(data)))
	before := allocated()
	for b.Loop() {
		plan(b, data, hosts)
	}
	b.ReportMetric(float64(allocated()-before)/float64(b.N)/float64(len(data)), "files/op")
}

// TestAPlanAllocatesLittle: from the bytes of a file to the verdicts no more
// than eight times its length is allocated in all, however much of it lives at
// once. A tree of the values of the document alone takes twice that.
func TestAPlanAllocatesLittle(t *testing.T) {
	const hosts, most = 10_000, 8
	data := snapshotOf(t, hosts)
	before := allocated()
	plan(t, data, hosts)
	if got := float64(allocated()-before) / float64(len(data)); got > most {
		t.Errorf("a plan of %d bytes allocates %.1f times as much, want at most %d", len(data), got, most)
	}
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
