//go:build soak

package soak_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Where each controld listens in its own network.
const (
	grpcAddr = "127.0.0.1:7443"
	httpPort = "7080"
)

// replica is one controld of the fleet, from one start to the next.
type replica struct {
	number  int
	network *network
	bin     string
	config  string   // the file
	env     []string // beside that of the test
	log     string   // the file
	fleet   remudav1.FleetServiceClient
	metrics *http.Client

	mu      sync.Mutex
	process *process
}

func newReplica(t testing.TB, number int, n *network) *replica {
	t.Helper()
	r := &replica{number: number, network: n, bin: bin(t)}
	dial := func(ctx context.Context, address string) (net.Conn, error) { return n.dial(ctx, address) }
	conn, err := grpc.NewClient("passthrough:///"+grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	r.fleet, r.metrics = remudav1.NewFleetServiceClient(conn), &http.Client{Transport: &http.Transport{}, Timeout: scrapeWithin}
	t.Cleanup(func() {
		_ = conn.Close() // closing twice is its only error
		r.metrics.CloseIdleConnections()
		if p := r.running(); p != nil {
			_ = p.kill() // it has ended already
		}
		if t.Failed() {
			t.Logf("the last warnings and errors of replica %d:\n%s", number, warnings(r.log))
		}
	})
	return r
}

func (r *replica) running() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// warnings are the last lines of a log that are more than information.
func warnings(path string) string {
	const lines = 40
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.Contains(line, "[INFO]") })
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

const (
	scrapeEvery  = 500 * time.Millisecond
	scrapeWithin = 900 * time.Millisecond
)

// swept is what a process says of its sweeps of what is due.
type swept struct {
	last  time.Time     // when it last ended well; zero: never, or the process does not answer
	count float64       // that ended well
	took  time.Duration // all of them together
}

const sweepsWell = `remuda_sweep_duration_seconds_%s{result="ok",sweep="due"}`

func (r *replica) swept(ctx context.Context) (s swept) {
	now := time.Now()
	metrics, err := r.scrape(ctx)
	if err != nil {
		return s
	}
	s.count = metrics[fmt.Sprintf(sweepsWell, "count")]
	s.took = seconds(metrics[fmt.Sprintf(sweepsWell, "sum")])
	if age, known := metrics[`remuda_sweep_age_seconds{sweep="due"}`]; known && s.count > 0 {
		s.last = now.Add(-seconds(age))
	}
	return s
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (r *replica) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(r.network.address(), httpPort)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := r.metrics.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return parseMetrics(response.Body), nil
}

// parseMetrics are the values by name and labels.
func parseMetrics(text io.Reader) map[string]float64 {
	found := map[string]float64{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if n, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil && at > 0 {
			found[lines.Text()[:at]] = n
		}
	}
	return found
}

// sweeps looks at all replicas for the longest time in which none swept.
type sweeps struct {
	replicas []*replica
	say      func(format string, args ...any)

	mu        sync.Mutex
	seen      []swept
	last      time.Time // over all replicas, when a sweep ended
	sweeper   int       // the replica whose that was
	longest   time.Duration
	at        time.Time // when the longest began
	during    string
	slowest   time.Duration // sweep
	takeovers int
	fault     string
	full      time.Duration // how long no process could write, since the last sweep
	away      time.Duration // how long that was altogether
}

// watch looks until ctx ends.
func (s *sweeps) watch(ctx context.Context) {
	s.seen = make([]swept, len(s.replicas))
	tick := time.NewTicker(scrapeEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *sweeps) look(ctx context.Context) {
	all := make([]swept, len(s.replicas))
	var wg sync.WaitGroup
	for i, r := range s.replicas {
		wg.Go(func() { all[i] = r.swept(ctx) })
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, now := range all {
		if now.last.IsZero() {
			continue
		}
		before := s.seen[i]
		if now.count < before.count { // another process
			before = swept{}
		}
		s.seen[i] = now
		if n := now.count - before.count; n > 0 && now.last.After(s.last) {
			s.ended(i, now.last, (now.took-before.took)/time.Duration(n))
		}
	}
}

// ended takes in that a replica ended a sweep at a time, which took so long.
func (s *sweeps) ended(replica int, at time.Time, took time.Duration) {
	s.slowest = max(s.slowest, took)
	if !s.last.IsZero() {
		if replica != s.sweeper {
			s.takeovers++
		}
		gap := at.Add(-took).Sub(s.last) - s.full
		if gap > lease {
			s.say("no sweep for %s from %s, without %s in which the store took no write; replica %d went on with one of %s",
				gap, s.last.Format(time.TimeOnly), s.full, replica, took)
		}
		if gap > s.longest {
			s.longest, s.at, s.during = gap, s.last, s.fault
		}
	}
	s.last, s.sweeper, s.full = at, replica, 0
}

// nothingWritten notes that no replica could write for so long.
func (s *sweeps) nothingWritten(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full += d
	s.away += d
}

// under notes which fault there is, or was last.
func (s *sweeps) under(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *sweeps) by() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweeper
}

func (s *sweeps) longestGap() (time.Duration, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest, fmt.Sprintf("from %s, seen at or after %s", s.at.Format(time.TimeOnly), s.during)
}
