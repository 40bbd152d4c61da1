//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// load is what callers do: each gets hosts for a run, has jobs run there, and releases the run, by whichever replica, again and again.
type load struct {
	*stage
	settled sync.WaitGroup // of runs

	mu       sync.Mutex
	last     int // run id
	runs     int
	failed   map[codes.Code]int // calls that were made again
	short    int                // runs that got too few hosts in time
	wrong    []string           // what no fault excuses
	released int                // hosts that runs gave back
	took     map[string][]time.Duration
}

// caller is how one of them asks.
type caller struct {
	pool  string
	least int           // hosts of a run
	most  int           // the same
	pause time.Duration // before the next run, at most
}

const (
	// callWithin is how long a caller waits for one call, before it asks another replica.
	callWithin = 5 * time.Second
	// giveUpAfter is when a caller that was never answered fails the test. A request lives for provisionWithin.
	giveUpAfter     = 3 * time.Minute
	provisionWithin = 2 * time.Minute
)

// call lets callers call until ctx ends. Runs that have begun go on to their end.
func (l *load) call(ctx context.Context, callers int, c caller) {
	for range callers {
		l.settled.Go(func() {
			for at := l.anyReplica(); ctx.Err() == nil; {
				l.run(c, at)
				if c.pause > 0 {
					time.Sleep(rand.N(c.pause))
				}
			}
		})
	}
}

// place is the replica that a caller asks first: the one that answered last, as a load balancer would have it.
type place struct{ replica *replica }

func (l *load) anyReplica() *place { return &place{l.replicas[rand.IntN(len(l.replicas))]} }

// run is the life of one run.
func (l *load) run(c caller, at *place) {
	if rand.IntN(10) == 0 {
		*at = *l.anyReplica()
	}
	l.mu.Lock()
	l.last++
	l.runs++
	id := fmt.Sprint(l.last)
	l.mu.Unlock()
	l.history.asks(id)
	hosts := l.provision(id, c, at)
	for _, t := range hosts {
		l.history.gets(t)
	}
	jobs := l.begin(hosts)
	if rand.IntN(10) > 0 { // else it is released while its jobs run
		for _, done := range jobs {
			<-done
		}
	}
	call := l.history.now()
	l.release(id, at)
	l.history.gives(id, hosts, call)
	for _, done := range jobs {
		<-done
	}
}

// provision asks until there is an answer, always for the same request.
func (l *load) provision(run string, c caller, at *place) (hosts []tenure) {
	req := &remudav1.ProvisionRequest{
		Repository: repository, RunId: run, RequestId: "request-" + run, Pool: c.pool,
		InstanceCount: proto.Int32(int32(c.least + rand.IntN(c.most-c.least+1))), Timeout: durationpb.New(provisionWithin),
	}
	var got *remudav1.ProvisionResponse
	l.insist("provision "+run, at, func(ctx context.Context, fleet remudav1.FleetServiceClient) (err error) {
		got, err = fleet.Provision(ctx, req)
		return err
	})
	for _, i := range got.GetInstances() {
		hosts = append(hosts, tenure{i.GetInstanceId(), run, i.GetAssignment()})
		if i.GetRunId() != run || i.GetState() != remudav1.State_STATE_RUNNING {
			l.say("run %s was given host %s, which is %s of run %s", run, i.GetInstanceId(), i.GetState(), i.GetRunId())
		}
	}
	if n := len(hosts); n > 0 && n != int(req.GetInstanceCount()) {
		l.say("run %s was given %d hosts and asked for %d", run, n, req.GetInstanceCount())
	}
	return hosts
}

// begin starts a job on each host, of no time as a rule, and now and then one that is longer than a fault.
func (l *load) begin(hosts []tenure) (jobs []chan struct{}) {
	for _, t := range hosts {
		lasts := rand.N(50 * time.Millisecond)
		if rand.IntN(500) == 0 {
			lasts = rand.N(30 * time.Second)
		}
		done, err := l.hosts.begin(t, lasts)
		if err != nil {
			l.say("%v", err)
			continue
		}
		jobs = append(jobs, done)
	}
	return jobs
}

func (l *load) release(run string, at *place) {
	var got *remudav1.ReleaseResponse
	l.insist("release "+run, at, func(ctx context.Context, fleet remudav1.FleetServiceClient) (err error) {
		got, err = fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true})
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released += len(got.GetInstances())
}

// insist makes a call to one replica after the other until there is an answer.
func (l *load) insist(what string, at *place, call func(ctx context.Context, fleet remudav1.FleetServiceClient) error) {
	var last error
	defer l.timed(what, time.Now())
	for began := time.Now(); time.Since(began) < giveUpAfter; {
		ctx, cancel := context.WithTimeout(context.Background(), callWithin)
		last = call(ctx, at.replica.fleet)
		cancel()
		if last == nil || !l.again(what, last) {
			return
		}
		*at = *l.anyReplica()
		time.Sleep(rand.N(200 * time.Millisecond))
	}
	l.say("%s was never answered: %v", what, last)
}

// timed notes how long it took until there was an answer.
func (l *load) timed(what string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verb, _, _ := strings.Cut(what, " ")
	l.took[verb] = append(l.took[verb], time.Since(began))
}

// times are the median, the 99th percentile and the longest time of what was asked.
func (l *load) times(verb string) string {
	list := slices.Sorted(slices.Values(l.took[verb]))
	at := func(q float64) time.Duration { return list[int(q*float64(len(list)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("%s, %s, %s", at(0.5), at(0.99), at(1))
}

// again reports whether a call that failed is to be made again.
func (l *load) again(what string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	code := status.Code(err)
	l.failed[code]++
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	case codes.ResourceExhausted:
		l.short++
		return false
	}
	l.wrong = append(l.wrong, fmt.Sprintf("%s: %v", what, err))
	return false
}

func (l *load) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// retries are the codes for which calls were made again, with how often.
func retries(failed map[codes.Code]int) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, fmt.Sprintf("%d %s", failed[code], code))
	}
	return strings.Join(all, ", ")
}
