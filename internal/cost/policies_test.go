package cost_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services"
	ecsservices "github.com/remuda-ci/remuda/internal/services/ecs"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// freshHosts are how many of them a warm pool has ready.
var freshHosts = []int{1, 10}

// warmed is what a warm pool of so many fresh hosts uses.
type warmed struct {
	hosts int
	// launch is the sweep that launches them, and pooled those due sweeps in which
	// they come into the pool, without what one that finds nothing uses.
	launch, pooled cost.Usage
	// rest is a sweep that finds them all ready.
	rest cost.Usage
	// claim is a run that takes them all.
	claim cost.Usage
}

// measureWarm launches fresh hosts ahead of need, and has a run claim them.
func measureWarm(t *testing.T) []warmed {
	var all []warmed
	for _, n := range freshHosts {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t)
			w.provision("1", 1, 0, time.Time{}) // what a process asks for once
			w.release("1", 1)
			w.clock.set(w.clock.now().Add(time.Hour))
			w.sweep(w.fleet.NewDueSweep())
			w.clock.set(w.clock.now().Add(lifecycle.DefaultPolicy().EndPoll))
			w.sweep(w.fleet.NewDueSweep())
			nothing := w.sweep(w.fleet.NewDueSweep())
			w.fleet = w.newFleet(w.compute, withWarm(n))
			m := warmed{hosts: n, launch: w.sweep(w.fleet.NewWarmSweep())}
			w.keys = w.idle()
			w.clock.set(w.clock.now().Add(boot))
			w.answer()
			m.pooled = w.sweep(w.fleet.NewDueSweep()).Plus(nothing.Times(-1))
			m.rest = w.sweep(w.fleet.NewWarmSweep())
			m.claim = w.meter.of(func() { w.provision("4713", n, n, time.Time{}) })
			all = append(all, m)
		})
	}
	return all
}

func withWarm(n int) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Warm = &fleet.WarmPool{
			Spec: lifecycle.Spec{
				Pool: p.Name, ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: fleet.DefaultInstanceTypes,
			},
			Policy: policy.WarmPolicy{MinimumIdle: n, Lead: 3 * time.Minute},
		}
		o.Pools["default"] = p
	}
}

// idle are the keys of the hosts that serve no run.
func (w *world) idle() (keys []string) {
	w.t.Helper()
	idle := lifecycle.Filter{States: []lifecycle.State{lifecycle.StateIdle}}
	page, err := w.plain.ListInstances(w.t.Context(), idle, lifecycle.PageOf{Limit: 100})
	w.must(err)
	for _, r := range page.Items {
		keys = append(keys, r.HostKey)
	}
	return keys
}

// servicesAtRest are how many services one sweep looks at.
var servicesAtRest = []int{1, 10}

// measureServices is a look at services of ECS that have nothing to do, by their number.
func measureServices(t *testing.T) map[int]cost.Usage {
	w := newWorld(t)
	counted := awstest.Config(t, awstest.Moto(t), func(o *aws.Options) { o.Calls = &w.meter.calls })
	client, plain := ecs.NewFromConfig(counted), ecs.NewFromConfig(awstest.Config(t, awstest.Moto(t)))
	_, err := plain.CreateCluster(t.Context(), &ecs.CreateClusterInput{ClusterName: sdk.String("ci")})
	w.must(err)
	task, err := plain.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family: sdk.String("runner"),
		ContainerDefinitions: []ecstypes.ContainerDefinition{{
			Name: sdk.String("runner"), Image: sdk.String("runner"), Memory: sdk.Int32(512),
		}},
	})
	w.must(err)
	all, places, looks := map[string]services.Service{}, map[string]ecsservices.Place{}, map[int]cost.Usage{}
	for n := range servicesAtRest[len(servicesAtRest)-1] {
		name := fmt.Sprintf("service-%02d", n+1)
		_, err := plain.CreateService(t.Context(), &ecs.CreateServiceInput{
			Cluster: sdk.String("ci"), ServiceName: &name, TaskDefinition: task.TaskDefinition.TaskDefinitionArn, DesiredCount: sdk.Int32(0),
		})
		w.must(err)
		places[name] = ecsservices.Place{Region: region, Cluster: "ci", Service: name}
		all[name] = services.Service{
			Name: name, Region: region, Cluster: "ci", ECSService: name, Backlog: workqueue.Backlog{Store: w.store},
			Policy: policy.ServicePolicy{Maximum: 10, BacklogPerRunner: 5, IdleChecks: 5},
		}
		if n+1 != servicesAtRest[len(looks)] {
			continue
		}
		scaler, err := ecsservices.New(places, map[string]*ecs.Client{region: client})
		w.must(err)
		w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
			o.Services = &services.Options{Store: w.store, Scaler: scaler, Services: all}
		})
		for range 2 { // the first look at each writes an event
			w.clock.set(w.clock.now().Add(serviceLook))
			looks[n+1] = w.sweep(w.fleet.NewServiceSweep())
		}
	}
	return looks
}

// worked is a call of a client or a worker.
type worked struct {
	what string
	used cost.Usage
}

const (
	queueName, workerName = "render", "worker-01"

	payload  = 1 << 10  // bytes of a job
	logLines = 4 << 10  // bytes that a worker appends at once
	logWhole = 64 << 10 // bytes that are kept of a log
)

// The calls by which workers do jobs, in the table and in its example.
const (
	submitted, asksInVain, claimed  = "a job is submitted", "a worker asks, and none waits", "a worker claims it"
	heard, logged, looked, finished = "a heartbeat", "4 KiB of log", "it is read then", "it is finished then"
	loggedLate                      = "4 KiB of log, when 64 KiB are kept"
	workSweep                       = "a sweep that finds nothing"
)

// lines are of a log, and different each time, so that they cannot be stored as less.
func lines(random *rand.Rand) string {
	var text strings.Builder
	for text.Len() < logLines {
		fmt.Fprintf(&text, "%015x\n", random.Uint64()>>4)
	}
	return text.String()
}

// measureWork is what one job of a service's queue uses, call by call.
func measureWork(t *testing.T) (all []worked) {
	w := newWorld(t)
	w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
		o.Workers = &workqueue.Options{
			Store: w.store, Services: map[string]model.JobPolicy{queueName: {QueueTime: time.Hour}}, Queued: func(string) {},
		}
	})
	ctx, f, id, offset := t.Context(), w.fleet, requestID, int64(0)
	turn := model.JobAttempt{WorkerID: workerName, Number: 1}
	random := rand.New(rand.NewPCG(1, 2))
	log := func() error {
		_, err := f.AppendWorkLog(ctx, queueName, id, turn, offset, lines(random), w.clock.now())
		offset += logLines
		return err
	}
	step := func(what string, do func() error) {
		w.clock.set(w.clock.now().Add(workerBeat))
		all = append(all, worked{what, w.meter.of(func() { w.must(do()) })})
	}
	_, err := f.HearWorker(ctx, queueName, workerName, "1.0.0", w.clock.now())
	w.must(err)
	step(asksInVain, func() error { _, _, err := f.ClaimWork(ctx, queueName, workerName, "1.0.0", w.clock.now()); return err })
	step(submitted, func() error {
		_, err := f.SubmitWork(ctx, queueName, id, make([]byte, payload), w.clock.now())
		return err
	})
	step(claimed, func() error {
		_, found, err := f.ClaimWork(ctx, queueName, workerName, "1.0.0", w.clock.now())
		if err == nil && !found {
			t.Error("no job was found")
		}
		return err
	})
	step(heard, func() error { _, err := f.HearWorker(ctx, queueName, workerName, "1.0.0", w.clock.now()); return err })
	step(logged, log)
	for offset < logWhole {
		w.must(log())
	}
	step(loggedLate, log)
	step(looked, func() error { _, err := f.Work(ctx, queueName, id); return err })
	step(finished, func() error {
		_, err := f.FinishWork(ctx, queueName, id, turn, true, "", w.clock.now())
		return err
	})
	_, err = f.HearWorker(ctx, queueName, workerName, "1.0.0", w.clock.now()) // else the sweep would find that it is offline
	w.must(err)
	return append(all, worked{workSweep, w.sweep(f.NewWorkSweep())})
}
