package aws_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Where the code of the peers is: scripts/peers fetches it, and no copy of it is here. A benchmark whose peer is not there is skipped.
const (
	poolManagerVariable = "PEER_POOL_MANAGER" // a directory with dist/index.js of EC2 Runner Pool
	scaleDownVariable   = "PEER_SCALE_DOWN"   // the bundled scale-down function of terraform-aws-github-runner
)

// quietPool outlives the benchmark, and its sweeps are as often as by default.
const quietPool = `
  default: {resource_classes: [large], idle_time: 1h, drift: ignore}
`

// way is how far AWS is, and how often a host of EC2 Runner Pool reads its row. Its user data sleeps for 0.25 s and then starts a process of
// the AWS command line, which takes most of a second: 1 s is what its users have, and 0.25 s what they would have if that took no time.
type way struct{ delay, poll time.Duration }

func (w way) String() string { return fmt.Sprintf("delay=%s/poll=%s", w.delay, w.poll) }

var (
	near   = way{0, time.Second}
	usual  = way{5 * time.Millisecond, time.Second}
	atBest = way{5 * time.Millisecond, 250 * time.Millisecond}
)

// peers are Remuda and EC2 Runner Pool, each in an account of its own on the same emulators, and one GitHub.
type peers struct {
	remuda *stage
	pool   *poolManager
	runs   int
	filled int // hosts in each pool
}

func startPeers(b *testing.B) *peers {
	b.Helper()
	dir := os.Getenv(poolManagerVariable)
	if dir == "" {
		b.Skipf("%s is not set: run make peers", poolManagerVariable)
	}
	s := newStageWith(b, testrun.System.Dir(b), setup{pools: quietPool})
	s.ctx = b.Context() // a benchmark may take longer than a test
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(b, err)
	return &peers{remuda: s, pool: newPoolManager(b, dir)}
}

// BenchmarkPeersWarm: hosts of the pool serve a run, and are released until all are pooled again.
func BenchmarkPeersWarm(b *testing.B) {
	p := startPeers(b)
	for _, hosts := range []int{1, 10, 40} {
		ways := []way{near, usual}
		if hosts == 10 {
			ways = append(ways, atBest)
		}
		for _, w := range ways {
			b.Run(fmt.Sprintf("hosts=%d/%s", hosts, w), func(b *testing.B) {
				p.fill(hosts)
				p.compare(b, w, hosts, false)
			})
		}
	}
}

// BenchmarkPeersCold: all hosts of a run are launched, boot in no time, and are pooled after it.
func BenchmarkPeersCold(b *testing.B) {
	p := startPeers(b)
	for _, hosts := range []int{1, 10} {
		b.Run(fmt.Sprintf("hosts=%d/%s", hosts, usual), func(b *testing.B) {
			p.compare(b, usual, hosts, true)
			p.remuda.endAll()
			p.pool.endAll()
		})
	}
}

// fill has that many hosts in each pool that have served a run.
func (p *peers) fill(hosts int) {
	p.remuda.Helper()
	if p.filled >= hosts {
		return
	}
	p.filled = hosts
	run := p.nextRun()
	p.remuda.provision(ask(run, int32(hosts)))
	p.remuda.release(run)
	p.pool.provision(run, hosts)
	p.pool.release(run)
	p.pool.awaitMessages()
}

func (p *peers) nextRun() string {
	p.runs++
	return strconv.Itoa(10_000 + p.runs)
}

// compare lets both serve a run, one after the other, and the other one first the next time.
func (p *peers) compare(b *testing.B, w way, hosts int, cold bool) {
	b.Helper()
	p.remuda.account.controld.Delay(w.delay)
	p.remuda.account.hosts.Delay(w.delay)
	p.pool.set(w)
	for range b.N {
		run := p.nextRun()
		sides := []func(){
			func() { p.serve(b, p.remuda.side(), p.byRemuda(run, hosts), hosts, cold) },
			func() { p.serve(b, p.pool.side(), p.byPool(run, hosts), hosts, cold) },
		}
		if p.runs%2 == 0 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			side()
		}
		p.pool.awaitMessages()
	}
}

// service is how a run is served.
type service struct{ provision, release func() }

func (p *peers) byRemuda(run string, hosts int) service {
	return service{
		func() { p.remuda.provision(ask(run, int32(hosts))) },
		func() {
			if got := p.remuda.release(run); got.GetPooledCount() != int32(hosts) {
				p.remuda.Fatalf("%d of %d hosts are pooled: %v", got.GetPooledCount(), hosts, got)
			}
		},
	}
}

func (p *peers) byPool(run string, hosts int) service {
	return service{func() { p.pool.provision(run, hosts) }, func() { p.pool.release(run) }}
}

// serve measures one side, and fails if it did other work than was meant.
func (p *peers) serve(b *testing.B, by side, work service, hosts int, cold bool) {
	b.Helper()
	// The run lasts for a while, so that its release falls between any two reads of its hosts.
	lasts := time.Second + time.Duration(p.runs%3)*1300*time.Millisecond
	provided := by.measured(b, work.provision)
	if launched := provided.control["ec2.CreateFleet"] > 0; launched != cold {
		b.Fatalf("%s: launched: %v, want %v: %v", by.name, launched, cold, provided.control)
	}
	time.Sleep(lasts)
	released := by.measured(b, work.release)
	provided.report(b, by.name+"-provision")
	released.report(b, by.name+"-release")
	if sent := released.control["sqs.SendMessage"]; by.name == "peer" && sent != hosts {
		b.Fatalf("%d of %d hosts went back to the queue: %v", sent, hosts, released.control)
	}
}

// side is one of those that are compared: its control side and its hosts call AWS by proxies of their own.
type side struct {
	name           string // that of its units
	control, hosts *awstest.Proxy
	github         *local.GitHub
}

func (s *stage) side() side { return side{"remuda", s.account.controld, s.account.hosts, s.github} }

// round is what a piece of work took: time, the calls to AWS of the control side and of the hosts, and all calls to GitHub.
type round struct {
	took                   time.Duration
	control, hosts, github map[string]int // by operation
}

// measured does the work. Calls that a side makes by itself, such as sweeps and heartbeats, count if they fall into its time.
func (s side) measured(t testing.TB, work func()) round {
	t.Helper()
	control, hosts, before := len(s.control.Calls()), len(s.hosts.Calls()), s.githubCalls(t)
	began := time.Now()
	work()
	took := time.Since(began)
	got := round{took, counted(s.control.Calls()[control:]), counted(s.hosts.Calls()[hosts:]), s.githubCalls(t)}
	for route, n := range before {
		if got.github[route] -= n; got.github[route] == 0 {
			delete(got.github, route)
		}
	}
	return got
}

// githubCalls are the calls to GitHub's API so far, by route.
func (s side) githubCalls(t testing.TB) map[string]int {
	t.Helper()
	calls, err := s.github.Calls(t.Context())
	check(t, err)
	counts := map[string]int{}
	for _, c := range calls {
		if c.OfGitHub() {
			counts["github."+c.Method+":"+c.Route] = int(c.Count)
		}
	}
	return counts
}

// counted are how many calls there were of each operation.
func counted(calls []awstest.Call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		counts[c.Service+"."+c.Operation]++
	}
	return counts
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// report gives the units NAME-s, -calls, -host-calls, -github-calls, and one more for each operation.
func (r round) report(b *testing.B, name string) {
	b.ReportMetric(0, "ns/op") // it would be the time of both sides
	b.ReportMetric(r.took.Seconds(), name+"-s")
	b.ReportMetric(float64(total(r.control)), name+"-calls")
	b.ReportMetric(float64(total(r.hosts)), name+"-host-calls")
	b.ReportMetric(float64(total(r.github)), name+"-github-calls")
	for _, counts := range []map[string]int{r.control, r.github} {
		for operation, n := range counts {
			b.ReportMetric(float64(n), name+":"+operation)
		}
	}
}

// endAll ends every host, as an operator does.
func (s *stage) endAll() {
	s.Helper()
	list, err := s.account.instances(s.ctx)
	check(s.TB, err)
	for _, i := range list {
		if ofFleet(i) && alive(i) {
			_, err := s.fleet.TerminateInstance(s.ctx, &remudav1.TerminateInstanceRequest{InstanceId: *i.InstanceId})
			check(s.TB, err)
		}
	}
	s.eventually("all have ended", func() bool { return s.living() == 0 })
	purge(s.TB, s.ctx, sqs.NewFromConfig(awstest.Config(s.TB, awstest.Moto(s.TB))))
}

// purge empties the queues of an account: messages of hosts that have ended are work that only the next run would have. PurgeQueue may be
// called once a minute, so that each message is deleted.
func purge(t testing.TB, ctx context.Context, client *sqs.Client) {
	t.Helper()
	queues, err := client.ListQueues(ctx, nil)
	check(t, err)
	for _, queue := range queues.QueueUrls {
		for {
			got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10})
			check(t, err)
			if len(got.Messages) == 0 {
				break
			}
			for _, m := range got.Messages {
				_, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
				check(t, err)
			}
		}
	}
}

// TestMeasured: calls of both sides are counted apart, by operation, and neither those before nor those past the proxies.
func TestMeasured(t *testing.T) {
	a, hub := emptyAccount(t), startGitHub(t)
	by := side{"remuda", a.controld, a.hosts, hub}
	controld, host := ec2.NewFromConfig(awstest.Config(t, a.controld.URL())), sts.NewFromConfig(awstest.Config(t, a.hosts.URL()))
	call := func() {
		_, err := controld.DescribeInstances(t.Context(), nil)
		check(t, err)
		if err := hub.DeleteRunner(t.Context(), repository, 1); err == nil {
			t.Error("there is a runner")
		}
	}
	call()
	got := by.measured(t, func() {
		call()
		call()
		_, err := host.GetCallerIdentity(t.Context(), nil)
		check(t, err)
		_, err = a.instances(t.Context())
		check(t, err)
	})
	want := []map[string]int{
		{"ec2.DescribeInstances": 2}, {"sts.GetCallerIdentity": 1}, {"github.DELETE:/repos/{owner}/{repo}/actions/runners/{id}": 2},
	}
	if diff := cmp.Diff(want, []map[string]int{got.control, got.hosts, got.github}); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if total(got.control) != 2 || got.took <= 0 {
		t.Errorf("got %+v", got)
	}
}
