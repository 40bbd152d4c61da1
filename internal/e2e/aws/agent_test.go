package aws_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// agentPools: hosts of the pool clean do not register ahead of need, and only its newest one stays awake.
const agentPools = `
  hot: {resource_classes: [large], idle_time: 1h, drift: ignore}
  clean: {resource_classes: [large], idle_time: 1h, drift: ignore, standby: clean, awake: 1}
`

// agentWatched is how long agents are watched: some heartbeats of each state.
const agentWatched = 2 * time.Minute

// BenchmarkAgent: what the agent of a host takes in each state for an hour, watched for two minutes: its own memory and processor time, and its calls to
// DynamoDB with their bytes of HTTP, without TLS.
func BenchmarkAgent(b *testing.B) {
	s := newStageWith(b, testrun.System.Dir(b), setup{pools: agentPools})
	s.ctx = b.Context() // a host rests after five minutes
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(b, err)
	hosts := s.hostsByState()
	m := meterCalls(s.account.hosts)
	before, called := map[string]agentUse{}, len(s.account.hosts.Calls())
	for state, host := range hosts {
		before[state] = s.agentUse(m, host)
	}
	time.Sleep(agentWatched)
	for _, state := range agentStates {
		now, then := s.agentUse(m, hosts[state]), before[state]
		b.Run("state="+state, func(b *testing.B) {
			hour := time.Hour.Seconds() / agentWatched.Seconds()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(now.memory, "MiB")
			b.ReportMetric(100*(now.processor-then.processor)/agentWatched.Seconds(), "%core")
			b.ReportMetric(float64(now.calls-then.calls)*hour, "calls/hour")
			b.ReportMetric(float64(now.bytes-then.bytes)*hour/1e6, "MB/hour")
		})
	}
	s.hostsAreIn(hosts)
	for _, c := range s.account.hosts.Calls()[called:] {
		if c.Service != "dynamodb" || !slices.Contains(hostOperations, c.Operation) {
			b.Errorf("an agent called %s, which is not counted", c.Action())
		}
	}
}

var agentStates = []string{"clean", "resting", "hot", "running", "job"}

// hostsByState makes a host of each state.
func (s *stage) hostsByState() map[string]string {
	s.Helper()
	in := func(pool string) func(*remudav1.ProvisionRequest) {
		return func(r *remudav1.ProvisionRequest) { r.Pool = pool }
	}
	clean := s.provision(ask("1", 2, in("clean"))).GetInstances()
	s.release("1")
	hot := s.provision(ask("2", 1, in("hot"))).GetInstances()[0].GetInstanceId()
	running := s.provision(ask("3", 1, in("hot"))).GetInstances()[0].GetInstanceId()
	job := s.provision(ask("4", 1, in("hot"))).GetInstances()[0].GetInstanceId()
	s.release("2")
	_, err := s.github.StartRun(s.ctx, repository, "4", "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: sleep 3600\n")
	check(s.TB, err)
	hosts := map[string]string{"hot": hot, "running": running, "job": job}
	s.eventually("a clean host rests", func() bool {
		for i, host := range clean {
			if s.host(host.GetInstanceId()).GetRestingTime() != nil {
				hosts["resting"], hosts["clean"] = host.GetInstanceId(), clean[1-i].GetInstanceId()
				return true
			}
		}
		return false
	})
	s.hostsAreIn(hosts)
	return hosts
}

func (s *stage) host(id string) *remudav1.Instance {
	s.Helper()
	got, err := s.fleet.GetInstance(s.ctx, &remudav1.GetInstanceRequest{InstanceId: id})
	check(s.TB, err)
	return got.GetInstance()
}

// hostsAreIn fails if a host is not in its state.
func (s *stage) hostsAreIn(hosts map[string]string) {
	s.Helper()
	idle, running := remudav1.State_STATE_IDLE, remudav1.State_STATE_RUNNING
	is := map[string]func(*remudav1.Instance) bool{
		"clean": func(i *remudav1.Instance) bool {
			return i.GetState() == idle && !i.GetHot() && i.GetRestingTime() == nil
		},
		"resting": func(i *remudav1.Instance) bool { return i.GetState() == idle && i.GetRestingTime() != nil },
		"hot":     func(i *remudav1.Instance) bool { return i.GetState() == idle && i.GetHot() },
		"running": func(i *remudav1.Instance) bool { return i.GetState() == running && !i.GetBusy() },
		"job":     func(i *remudav1.Instance) bool { return i.GetState() == running && i.GetBusy() },
	}
	for state, id := range hosts {
		if i := s.host(id); !is[state](i) {
			s.Fatalf("the host of the state %q is %v", state, i)
		}
	}
}

// agentUse is what an agent has taken so far.
type agentUse struct {
	memory, processor float64 // MiB now, and seconds
	calls, bytes      int
}

func (s *stage) agentUse(m *callMeter, host string) agentUse {
	s.Helper()
	p, err := procfs.NewProc(s.machines.pid(host))
	check(s.TB, err)
	stat, err := p.Stat()
	check(s.TB, err)
	calls, length := m.of(host)
	return agentUse{float64(stat.ResidentMemory()) / (1 << 20), stat.CPUTime(), calls, length}
}

// pid is the process id of a machine's agentd.
func (m *machines) pid(host string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.booted[host].cmd.Process.Pid
}

// callMeter counts the calls of hosts. Each names its host in its key.
type callMeter struct {
	mu    sync.Mutex
	calls []meteredCall
}

type meteredCall struct {
	request []byte
	length  int
}

// hostOperations are all that the policy of hosts allows.
var hostOperations = []string{"GetItem", "UpdateItem"}

func meterCalls(p *awstest.Proxy) *callMeter {
	m := &callMeter{}
	for _, operation := range hostOperations {
		p.Wrap("dynamodb", operation, m.around)
	}
	return m
}

func (m *callMeter) around(next awstest.Hook) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		request, err := httputil.DumpRequest(r, true)
		if err != nil { // the body is in memory
			panic(err)
		}
		counted := &countedAnswer{ResponseWriter: w}
		next(counted, r, forward)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls = append(m.calls, meteredCall{request, len(request) + counted.total()})
	}
}

func (m *callMeter) of(host string) (calls, length int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range slices.Values(m.calls) {
		if bytes.Contains(c.request, []byte(host)) {
			calls, length = calls+1, length+c.length
		}
	}
	return calls, length
}

// countedAnswer counts the bytes of an answer.
type countedAnswer struct {
	http.ResponseWriter
	body int
}

func (a *countedAnswer) Write(p []byte) (int, error) {
	a.body += len(p)
	return a.ResponseWriter.Write(p)
}

// total has the head too, with the date that the server adds.
func (a *countedAnswer) total() int {
	head := len("HTTP/1.1 200 OK\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\n")
	for name, values := range a.Header() {
		for _, value := range values {
			head += len(fmt.Sprintf("%s: %s\r\n", name, value))
		}
	}
	return head + a.body
}
