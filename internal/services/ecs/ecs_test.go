package ecs_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/ecs"
)

const (
	ireland  = "eu-west-1"
	virginia = "us-east-1"
)

// world is ECS in two regions on moto, behind a proxy.
type world struct {
	*ecs.Scaler
	proxy *awstest.Proxy
	// raw ask moto directly, so that they are not among the calls of the proxy.
	raw map[string]*api.Client
}

// newWorld makes the places' clusters and services, each of no runners.
func newWorld(t *testing.T, places map[string]ecs.Place) *world {
	t.Helper()
	w := &world{proxy: awstest.NewProxy(t, awstest.Moto(t)), raw: map[string]*api.Client{}}
	clients := map[string]*api.Client{}
	for _, region := range []string{ireland, virginia} {
		in := func(o *aws.Options) { o.Region = region }
		w.raw[region] = api.NewFromConfig(awstest.Config(t, awstest.Moto(t), in))
		clients[region] = api.NewFromConfig(awstest.Config(t, w.proxy.URL(), in))
	}
	for _, p := range places {
		w.create(t, p)
	}
	var err error
	if w.Scaler, err = ecs.New(places, clients); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) create(t *testing.T, p ecs.Place) {
	t.Helper()
	client := w.raw[p.Region]
	_, err := client.CreateCluster(t.Context(), &api.CreateClusterInput{ClusterName: &p.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	task, err := client.RegisterTaskDefinition(t.Context(), taskDefinition)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateService(t.Context(), &api.CreateServiceInput{
		Cluster: &p.Cluster, ServiceName: &p.Service, TaskDefinition: task.TaskDefinition.TaskDefinitionArn, DesiredCount: sdk.Int32(0),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// desired is what moto has.
func (w *world) desired(t *testing.T, p ecs.Place) int {
	t.Helper()
	out, err := w.raw[p.Region].DescribeServices(t.Context(), &api.DescribeServicesInput{Cluster: &p.Cluster, Services: []string{p.Service}})
	if err != nil || len(out.Services) != 1 {
		t.Fatalf("describe %s: %+v, %v", p, out, err)
	}
	return int(out.Services[0].DesiredCount)
}

// operations are the calls that passed the proxy, by how many of each there were.
func (w *world) operations() map[string]int {
	n := map[string]int{}
	for _, c := range w.proxy.Calls() {
		n[c.Operation]++
	}
	return n
}

func TestServicesInRegionsAndClusters(t *testing.T) {
	t.Parallel()
	places := map[string]ecs.Place{
		"jobs-eu":    {ireland, "runners", "jobs"},
		"reports-eu": {ireland, "runners", "reports"},
		"jobs-eu-2":  {ireland, "others", "jobs"},
		"jobs-us":    {virginia, "runners", "jobs"},
	}
	w := newWorld(t, places)
	desired := map[string]int{"jobs-eu": 3, "reports-eu": 1, "jobs-eu-2": 0, "jobs-us": 7}
	for name, n := range desired {
		for range 2 { // to say it again changes nothing
			if err := w.SetDesired(t.Context(), name, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	looks := w.Describe(t.Context(), []string{"jobs-eu", "reports-eu", "jobs-eu-2", "jobs-us"})
	for name, n := range desired {
		if got := looks[name]; got.Err != nil || got.Desired != n {
			t.Errorf("%s: got %+v, want %d", name, got, n)
		}
		if got := w.desired(t, places[name]); got != n {
			t.Errorf("%s: ECS has %d, want %d", name, got, n)
		}
	}
	if err := w.SetDesired(t.Context(), "jobs-eu", 0); err != nil {
		t.Fatal(err)
	}
	if got := w.desired(t, places["jobs-eu"]); got != 0 {
		t.Errorf("ECS has %d after it was scaled to zero", got)
	}
}

// A request describes ten services of a cluster.
func TestDescribeCostsARequestForTenServices(t *testing.T) {
	t.Parallel()
	places := map[string]ecs.Place{"elsewhere": {virginia, "runners", "s"}}
	names := []string{"elsewhere", "elsewhere"}
	for n := range 21 {
		name := fmt.Sprintf("s%02d", n)
		places[name] = ecs.Place{ireland, "runners", name}
		names = append(names, name)
	}
	w := newWorld(t, places)
	looks := w.Describe(t.Context(), names)
	for name := range places {
		if got := looks[name]; got.Err != nil {
			t.Errorf("%s: %v", name, got.Err)
		}
	}
	if err := w.SetDesired(t.Context(), "s00", 1); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"DescribeServices": 4, "UpdateService": 1}
	if diff := cmp.Diff(want, w.operations()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestWhatIsMissingHidesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]ecs.Place{"there": {ireland, "runners", "jobs"}, "deleted": {ireland, "runners", "old"}})
	clients := map[string]*api.Client{ireland: w.raw[ireland]}
	both, err := ecs.New(map[string]ecs.Place{
		"there": {ireland, "runners", "jobs"}, "no-service": {ireland, "runners", "unknown"}, "no-cluster": {ireland, "nowhere", "jobs"},
		"deleted": {ireland, "runners", "old"},
	}, clients)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.raw[ireland].DeleteService(t.Context(), &api.DeleteServiceInput{Cluster: sdk.String("runners"), Service: sdk.String("old"), Force: sdk.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	looks := both.Describe(t.Context(), []string{"there", "no-service", "no-cluster", "deleted", "unheard-of"})
	if err := looks["there"].Err; err != nil {
		t.Errorf("the one that is there: %v", err)
	}
	for name, says := range map[string]string{
		"no-service": "service unknown in cluster runners of eu-west-1", "no-cluster": "service jobs in cluster nowhere of eu-west-1",
		"deleted": "service old in cluster runners", "unheard-of": "unheard-of",
	} {
		if err := looks[name].Err; !errors.Is(err, lifecycle.ErrNotFound) || !strings.Contains(err.Error(), says) {
			t.Errorf("describe %s: got error %v, want one that says %q", name, err, says)
		}
	}
	for _, name := range []string{"no-service", "no-cluster", "unheard-of"} {
		if err := both.SetDesired(t.Context(), name, 1); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("scale %s: got error %v", name, err)
		}
	}
	if _, err := ecs.New(map[string]ecs.Place{"x": {"mars-1", "c", "s"}}, clients); err == nil || !strings.Contains(err.Error(), "mars-1") {
		t.Errorf("a region without a client: got error %v", err)
	}
}

// A region that is down costs its own services only.
func TestARegionThatIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]ecs.Place{"eu": {ireland, "runners", "jobs"}, "us": {virginia, "runners", "jobs"}})
	w.proxy.Handle("ecs", "DescribeServices", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		if strings.Contains(r.Header.Get("Authorization"), ireland) {
			http.Error(rw, `{"__type":"ServerException"}`, http.StatusInternalServerError)
			return
		}
		forward(r).Write(rw)
	})
	looks := w.Describe(t.Context(), []string{"eu", "us"})
	if err := looks["eu"].Err; !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("eu: got error %v, want unavailable", err)
	}
	if err := looks["us"].Err; err != nil {
		t.Errorf("us: %v", err)
	}
}

// What may go well another time is tried again, at most so often; the rest is
// said at once.
func TestFaults(t *testing.T) {
	t.Parallel()
	places := map[string]ecs.Place{"jobs": {virginia, "runners", "jobs"}}
	for _, kind := range awstest.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, places)
			w.proxy.Inject(awstest.Fault{Service: "ecs", Nth: 1, Kind: kind})
			if err := w.SetDesired(t.Context(), "jobs", 1); err != nil {
				t.Errorf("scale: %v", err)
			}
			w.proxy.Inject(awstest.Fault{Service: "ecs", Nth: 1, Kind: kind})
			if got := w.Describe(t.Context(), []string{"jobs"})["jobs"]; got.Err != nil || got.Desired != 1 {
				t.Errorf("describe: %+v", got)
			}
			w.proxy.Inject(awstest.Fault{Service: "ecs", Operation: "UpdateService", From: 1, Kind: kind})
			if err := w.SetDesired(t.Context(), "jobs", 2); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("scale while it is down: got error %v, want unavailable", err)
			}
			if n := w.operations()["UpdateService"]; n > 7 {
				t.Errorf("%d tries", n)
			}
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]ecs.Place{"jobs": {virginia, "runners", "jobs"}})
	w.proxy.Handle("ecs", "UpdateService", func(rw http.ResponseWriter, _ *http.Request, _ func(*http.Request) *awstest.Answer) {
		rw.Header().Set("Content-Type", "application/x-amz-json-1.1")
		http.Error(rw, `{"__type":"AccessDeniedException","message":"User: x is not authorized to perform: ecs:UpdateService on resource: y"}`, http.StatusBadRequest)
	})
	err := w.SetDesired(t.Context(), "jobs", 1)
	const want = "scale service jobs in cluster runners of us-east-1 to 1: "
	if !errors.Is(err, lifecycle.ErrRefused) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "allow the action ecs:UpdateService") {
		t.Errorf("got error %v", err)
	}
	if n := w.operations()["UpdateService"]; n != 1 {
		t.Errorf("%d tries of what is denied", n)
	}
}

func TestActionsAreThoseThatAreCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]ecs.Place{"jobs": {virginia, "runners", "jobs"}})
	w.Describe(t.Context(), []string{"jobs"})
	if err := w.SetDesired(t.Context(), "jobs", 1); err != nil {
		t.Fatal(err)
	}
	var called, declared []string
	for operation := range w.operations() {
		called = append(called, "ecs:"+operation)
	}
	for _, p := range ecs.Actions() {
		declared = append(declared, p.Action)
	}
	slices.Sort(called)
	slices.Sort(declared)
	if diff := cmp.Diff(called, declared); diff != "" {
		t.Errorf("actions (-called +declared):\n%s", diff)
	}
}
