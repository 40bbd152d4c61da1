package remudav1_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// provision is a request that keeps every rule at its limit, changed by change.
func provision(change func(*remudav1.ProvisionRequest)) *remudav1.ProvisionRequest {
	req := &remudav1.ProvisionRequest{
		Repository:           strings.Repeat("o", 39) + "/" + strings.Repeat("n", 100),
		RunId:                strings.Repeat("r", 64),
		RunAttempt:           proto.Int32(1000),
		InstanceCount:        proto.Int32(200),
		MinimumCount:         proto.Int32(200),
		Pool:                 strings.Repeat("p", 63),
		ResourceClass:        strings.Repeat("c", 32),
		UsageClass:           remudav1.UsageClass_USAGE_CLASS_SPOT,
		AllowedInstanceTypes: slices.Repeat([]string{"c6i.*"}, 50),
		MaxRuntime:           durationpb.New(5 * 24 * time.Hour),
		Timeout:              durationpb.New(30 * time.Minute),
		Labels:               manyLabels(20),
		RequestId:            strings.Repeat("q", 128),
	}
	change(req)
	return req
}

// manyLabels are n different labels of the greatest length.
func manyLabels(n int) []string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("%064d", i)
	}
	return labels
}

func TestGoodRequestsPass(t *testing.T) {
	repository := func(name string) proto.Message {
		return &remudav1.ExplainRunRequest{Repository: name, RunId: "1"}
	}
	for name, req := range map[string]proto.Message{
		"provision with only what is required": &remudav1.ProvisionRequest{Repository: "acme/app", RunId: "17"},
		"provision at every limit":             provision(func(*remudav1.ProvisionRequest) {}),
		"repository of a managed user":         repository("mona-cat_acme/app"),
		"repository with dots":                 repository("acme/.github"),
		"release":                              &remudav1.ReleaseRequest{Repository: "acme/app", RunId: "17"},
		"refresh":                              &remudav1.RefreshRequest{},
		"get":                                  &remudav1.GetInstanceRequest{InstanceId: "i-0123456789abcdef0"},
		"list without filters":                 &remudav1.ListInstancesRequest{},
		"list with all of them": &remudav1.ListInstancesRequest{
			States: []remudav1.State{remudav1.State_STATE_IDLE, remudav1.State_STATE_CLAIMED},
			RunId:  "17", ResourceClass: "large", Pool: "default", Repository: "mona-cat_acme/.github", PageSize: 1000, PageToken: strings.Repeat("t", 2048),
		},
		"list those of an owner": &remudav1.ListInstancesRequest{Repository: "acme"},
		"terminate":              &remudav1.TerminateInstanceRequest{InstanceId: "i-1", Reason: strings.Repeat("é", 512)},
		"hold for a day":         &remudav1.HoldInstanceRequest{InstanceId: "i-1", Duration: durationpb.New(24 * time.Hour)},
		"take the hold away":     &remudav1.HoldInstanceRequest{InstanceId: "i-1", Duration: durationpb.New(0)},
		"drain a host":           &remudav1.DrainRequest{InstanceId: "i-1", Reason: "a new rack"},
		"pause":                  &remudav1.PausePoolRequest{Pool: "default", Reason: strings.Repeat("é", 512)},
		"resume":                 &remudav1.ResumePoolRequest{Pool: "default"},
		"drain all":              &remudav1.DrainRequest{All: true},
		"drop a cache":           &remudav1.DropCacheRequest{Pool: "default", Name: "go", Repository: "acme/app", Reason: strings.Repeat("é", 512)},
		"drop that of an owner":  &remudav1.DropCacheRequest{Pool: "default", Name: "npm-2", Repository: "acme"},
		"list pools":             &remudav1.ListPoolsRequest{PageSize: 1000},
		"watch all":              &remudav1.WatchFleetRequest{},
		"explain":                repository("acme/app"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := protovalidate.Validate(req); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

// badRequest breaks one rule of one field.
type badRequest struct {
	name  string
	req   proto.Message
	field string // the field that the error must name
	rule  string // the rule that it must name
}

// badRequests breaks every rule of the contract at least once; TestEveryFieldIsTested keeps it complete.
func badRequests() []badRequest {
	return slices.Concat(badRepositories(), badProvisions(), badReleases(), badOperations(), badLists(), badWatches(), badWorkerRequests())
}

func badRepositories() []badRequest {
	var bad []badRequest
	for name, repository := range map[string]string{
		"empty":                 "",
		"no owner":              "/app",
		"no name":               "acme/",
		"no slash":              "acme",
		"two slashes":           "acme/app/x",
		"owner too long":        strings.Repeat("o", 40) + "/app",
		"managed user too long": strings.Repeat("o", 38) + "_x/app",
		"name too long":         "acme/" + strings.Repeat("n", 101),
		"hyphen first":          "-acme/app",
		"hyphen last":           "acme-/app",
		"two hyphens":           "ac--me/app",
		"dot in owner":          "ac.me/app",
		"space in name":         "acme/a p",
		"newline at the end":    "acme/app\n",
		"dot":                   "acme/.",
		"dot dot":               "acme/..",
	} {
		bad = append(bad,
			badRequest{name, &remudav1.ProvisionRequest{Repository: repository, RunId: "1"}, "repository", "must be"},
			badRequest{name, &remudav1.ReleaseRequest{Repository: repository, RunId: "1"}, "repository", "must be"},
			badRequest{name, &remudav1.ExplainRunRequest{Repository: repository, RunId: "1"}, "repository", "must be"},
		)
	}
	return bad
}

func badProvisions() []badRequest {
	type request = remudav1.ProvisionRequest
	var bad []badRequest
	add := func(name, field, rule string, change func(*request)) {
		bad = append(bad, badRequest{name, provision(change), field, rule})
	}
	add("empty", "run_id", "pattern", func(r *request) { r.RunId = "" })
	add("too long", "run_id", "pattern", func(r *request) { r.RunId = strings.Repeat("1", 65) })
	add("comma", "run_id", "pattern", func(r *request) { r.RunId = "1,2" })
	add("zero", "run_attempt", "greater than or equal to 1", func(r *request) { r.RunAttempt = proto.Int32(0) })
	add("too many", "run_attempt", "less than or equal to 1000", func(r *request) { r.RunAttempt = proto.Int32(1001) })
	add("zero", "instance_count", "greater than or equal to 1", func(r *request) { r.InstanceCount, r.MinimumCount = proto.Int32(0), nil })
	add("too many", "instance_count", "less than or equal to 200", func(r *request) { r.InstanceCount = proto.Int32(201) })
	add("zero", "minimum_count", "greater than or equal to 1", func(r *request) { r.MinimumCount = proto.Int32(0) })
	add("more than wanted", "minimum_count", "at most instance_count", func(r *request) { r.InstanceCount = proto.Int32(199) })
	add("more than the default", "minimum_count", "at most instance_count", func(r *request) { r.InstanceCount, r.MinimumCount = nil, proto.Int32(2) })
	add("upper case", "pool", "pattern", func(r *request) { r.Pool = "Default" })
	add("too long", "pool", "pattern", func(r *request) { r.Pool = strings.Repeat("p", 64) })
	add("slash", "resource_class", "pattern", func(r *request) { r.ResourceClass = "large/x" })
	add("too long", "resource_class", "pattern", func(r *request) { r.ResourceClass = strings.Repeat("c", 33) })
	add("unknown", "usage_class", "enum", func(r *request) { r.UsageClass = 99 })
	add("too many", "allowed_instance_types", "no more than 50", func(r *request) { r.AllowedInstanceTypes = slices.Repeat([]string{"c*"}, 51) })
	add("empty one", "allowed_instance_types[1]", "pattern", func(r *request) { r.AllowedInstanceTypes = []string{"c*", ""} })
	add("upper case", "allowed_instance_types[0]", "pattern", func(r *request) { r.AllowedInstanceTypes = []string{"C5.large"} })
	add("one too long", "allowed_instance_types[0]", "pattern", func(r *request) { r.AllowedInstanceTypes = []string{strings.Repeat("c", 65)} })
	add("zero", "max_runtime", "greater than 0s", func(r *request) { r.MaxRuntime = durationpb.New(0) })
	add("negative", "max_runtime", "greater than 0s", func(r *request) { r.MaxRuntime = durationpb.New(-1) })
	add("too long", "max_runtime", "less than or equal to", func(r *request) { r.MaxRuntime = durationpb.New(5*24*time.Hour + 1) })
	add("zero", "timeout", "greater than 0s", func(r *request) { r.Timeout = durationpb.New(0) })
	add("too long", "timeout", "less than or equal to", func(r *request) { r.Timeout = durationpb.New(30*time.Minute + 1) })
	add("too many", "labels", "no more than 20", func(r *request) { r.Labels = manyLabels(21) })
	add("twice", "labels", "unique", func(r *request) { r.Labels = []string{"gpu", "gpu"} })
	add("comma", "labels[1]", "pattern", func(r *request) { r.Labels = []string{"gpu", "a,b"} })
	add("empty one", "labels[0]", "pattern", func(r *request) { r.Labels = []string{""} })
	add("one too long", "labels[0]", "pattern", func(r *request) { r.Labels = []string{strings.Repeat("l", 65)} })
	add("space", "request_id", "pattern", func(r *request) { r.RequestId = "a b" })
	add("too long", "request_id", "pattern", func(r *request) { r.RequestId = strings.Repeat("q", 129) })
	return bad
}

func badReleases() []badRequest {
	release := func(runID string, attempt int32) *remudav1.ReleaseRequest {
		return &remudav1.ReleaseRequest{Repository: "acme/app", RunId: runID, RunAttempt: &attempt}
	}
	return []badRequest{
		{"empty", release("", 1), "run_id", "pattern"},
		{"hyphen first", release("-1", 1), "run_id", "pattern"},
		{"zero", release("1", 0), "run_attempt", "greater than or equal to 1"},
		{"too many", release("1", 1001), "run_attempt", "less than or equal to 1000"},
	}
}

func badOperations() []badRequest {
	terminate := func(id, reason string) *remudav1.TerminateInstanceRequest {
		return &remudav1.TerminateInstanceRequest{InstanceId: id, Reason: reason}
	}
	hold := func(id string, d *durationpb.Duration, reason string) *remudav1.HoldInstanceRequest {
		return &remudav1.HoldInstanceRequest{InstanceId: id, Duration: d, Reason: reason}
	}
	hour, long := durationpb.New(time.Hour), strings.Repeat("x", 513)
	return []badRequest{
		{"empty", &remudav1.GetInstanceRequest{}, "instance_id", "pattern"},
		{"too long", &remudav1.GetInstanceRequest{InstanceId: strings.Repeat("i", 129)}, "instance_id", "pattern"},
		{"empty", terminate("", ""), "instance_id", "pattern"},
		{"space", terminate("i 1", ""), "instance_id", "pattern"},
		{"too long", terminate("i-1", long), "reason", "at most 512"},
		{"empty", hold("", hour, ""), "instance_id", "pattern"},
		{"absent", hold("i-1", nil, ""), "duration", "required"},
		{"negative", hold("i-1", durationpb.New(-1), ""), "duration", "greater than or equal to 0s"},
		{"too long", hold("i-1", durationpb.New(24*time.Hour+1), ""), "duration", "less than or equal to"},
		{"too long", hold("i-1", hour, long), "reason", "at most 512"},
		{"absent", &remudav1.HoldFleetRequest{}, "duration", "required"},
		{"negative", &remudav1.HoldFleetRequest{Duration: durationpb.New(-1)}, "duration", "greater than or equal to 0s"},
		{"too long", &remudav1.HoldFleetRequest{Duration: durationpb.New(24*time.Hour + 1)}, "duration", "less than or equal to"},
		{"too long", &remudav1.HoldFleetRequest{Duration: hour, Reason: long}, "reason", "at most 512"},
		{"nothing", &remudav1.DrainRequest{}, "instance_id", "exactly one of"},
		{"two", &remudav1.DrainRequest{InstanceId: "i-1", All: true}, "instance_id", "exactly one of"},
		{"space", &remudav1.DrainRequest{InstanceId: "i 1"}, "instance_id", "pattern"},
		{"upper case", &remudav1.DrainRequest{Pool: "Default"}, "pool", "pattern"},
		{"too long", &remudav1.DrainRequest{All: true, Reason: long}, "reason", "at most 512"},
		{"no pool", &remudav1.DropCacheRequest{Name: "go", Repository: "acme/app"}, "pool", "pattern"},
		{"no name", &remudav1.DropCacheRequest{Pool: "default", Repository: "acme/app"}, "name", "pattern"},
		{"a path", &remudav1.DropCacheRequest{Pool: "default", Name: "../go", Repository: "acme/app"}, "name", "pattern"},
		{"no repository", &remudav1.DropCacheRequest{Pool: "default", Name: "go"}, "repository", "pattern"},
		{"a space", &remudav1.DropCacheRequest{Pool: "default", Name: "go", Repository: "acme/a b"}, "repository", "pattern"},
		{"too long", &remudav1.DropCacheRequest{Pool: "default", Name: "go", Repository: "acme/app", Reason: long}, "reason", "at most 512"},
		{"empty", &remudav1.PausePoolRequest{}, "pool", "pattern"},
		{"upper case", &remudav1.PausePoolRequest{Pool: "Default"}, "pool", "pattern"},
		{"too long", &remudav1.PausePoolRequest{Pool: "default", Reason: long}, "reason", "at most 512"},
		{"empty", &remudav1.ResumePoolRequest{}, "pool", "pattern"},
		{"upper case", &remudav1.ResumePoolRequest{Pool: "Default"}, "pool", "pattern"},
		{"too long", &remudav1.ResumePoolRequest{Pool: "default", Reason: long}, "reason", "at most 512"},
		{"empty", &remudav1.NudgeServiceRequest{}, "service", "pattern"},
		{"upper case", &remudav1.NudgeServiceRequest{Service: "Render"}, "service", "pattern"},
	}
}

func badLists() []badRequest {
	type request = remudav1.ListInstancesRequest
	states := func(s ...remudav1.State) *request { return &request{States: s} }
	idle := remudav1.State_STATE_IDLE
	long := strings.Repeat("t", 2049)
	return []badRequest{
		{"unspecified", states(remudav1.State_STATE_UNSPECIFIED), "states[0]", "list"},
		{"unknown", states(idle, 99), "states[1]", "enum"},
		{"twice", states(idle, idle), "states", "unique"},
		{"comma", &request{RunId: "1,2"}, "run_id", "pattern"},
		{"upper case", &request{ResourceClass: "Large"}, "resource_class", "pattern"},
		{"upper case", &request{Pool: "Default"}, "pool", "pattern"},
		{"no owner", &request{Repository: "/app"}, "repository", "pattern"},
		{"no name", &request{Repository: "acme/"}, "repository", "pattern"},
		{"too long", &request{Repository: strings.Repeat("a", 141)}, "repository", "at most 140"},
		{"negative", &request{PageSize: -1}, "page_size", "greater than or equal to 0"},
		{"too many", &request{PageSize: 1001}, "page_size", "less than or equal to 1000"},
		{"too long", &request{PageToken: long}, "page_token", "at most 2048"},
		{"negative", &remudav1.ListPoolsRequest{PageSize: -1}, "page_size", "greater than or equal to 0"},
		{"too many", &remudav1.ListPoolsRequest{PageSize: 1001}, "page_size", "less than or equal to 1000"},
		{"too long", &remudav1.ListPoolsRequest{PageToken: long}, "page_token", "at most 2048"},
		{"negative", &remudav1.ListServicesRequest{PageSize: -1}, "page_size", "greater than or equal to 0"},
		{"too many", &remudav1.ListServicesRequest{PageSize: 1001}, "page_size", "less than or equal to 1000"},
		{"too long", &remudav1.ListServicesRequest{PageToken: long}, "page_token", "at most 2048"},
		{"negative", &remudav1.PlanScaleDownRequest{RowLimit: -1}, "row_limit", "greater than or equal to 0"},
		{"too many", &remudav1.PlanScaleDownRequest{RowLimit: 10_001}, "row_limit", "less than or equal to 10000"},
		{"long ago", &remudav1.PlanScaleDownRequest{DecideTime: &timestamppb.Timestamp{Seconds: -1}}, "decide_time", "greater than or equal to"},
		{"upper case", &remudav1.ListWaitingRequest{Pool: "Default"}, "pool", "pattern"},
		{"negative", &remudav1.ListWaitingRequest{RowLimit: -1}, "row_limit", "greater than or equal to 0"},
		{"too many", &remudav1.ListWaitingRequest{RowLimit: 1001}, "row_limit", "less than or equal to 1000"},
		{"too long ago", &remudav1.ListEventsRequest{Since: durationpb.New(25 * time.Hour)}, "since", "86400s"},
		{"in the future", &remudav1.ListEventsRequest{Since: durationpb.New(-time.Second)}, "since", "greater than or equal to"},
		{"no id", &remudav1.ListEventsRequest{InstanceId: "i 1"}, "instance_id", "pattern"},
		{"negative", &remudav1.ListEventsRequest{RowLimit: -1}, "row_limit", "greater than or equal to 0"},
		{"too many", &remudav1.ListEventsRequest{RowLimit: 10_001}, "row_limit", "less than or equal to 10000"},
		{"long ago", &remudav1.ListEventsRequest{UntilTime: &timestamppb.Timestamp{Seconds: -1}}, "until_time", "greater than or equal to"},
		{"no day", &remudav1.GetCostRequest{Since: "yesterday"}, "since", "pattern"},
		{"no day", &remudav1.GetCostRequest{Until: "2026-1-1"}, "until", "pattern"},
		{"unknown", &remudav1.GetCostRequest{By: 99}, "by", "enum"},
		{"too long", &remudav1.GetCostRequest{Repository: strings.Repeat("a", 141)}, "repository", "at most 140"},
		{"upper case", &remudav1.GetCostRequest{Pool: "Default"}, "pool", "pattern"},
		{"a slot", &remudav1.GetCostRequest{RunId: "turn:1"}, "run_id", "pattern"},
		{"negative", &remudav1.GetCostRequest{RowLimit: -1}, "row_limit", "greater than or equal to 0"},
		{"too many", &remudav1.GetCostRequest{RowLimit: 10_001}, "row_limit", "less than or equal to 10000"},
	}
}

func badWatches() []badRequest {
	return []badRequest{
		{"comma", &remudav1.WatchFleetRequest{RunId: "1,2"}, "run_id", "pattern"},
		{"empty", &remudav1.ExplainRunRequest{Repository: "acme/app"}, "run_id", "must be given with repository"},
		{"empty", &remudav1.ExplainRunRequest{RunId: "1"}, "repository", "must be given with run_id"},
		{"comma", &remudav1.ExplainRunRequest{Repository: "acme/app", RunId: "1,2"}, "run_id", "pattern"},
		{"space", &remudav1.ExplainRunRequest{InstanceId: "i 1"}, "instance_id", "pattern"},
		{"too long", &remudav1.ExplainRunRequest{InstanceId: strings.Repeat("i", 129)}, "instance_id", "pattern"},
		{"neither", &remudav1.ExplainRunRequest{}, "instance_id", "either"},
		{"with a job", &remudav1.ExplainRunRequest{JobId: 7, InstanceId: "i-1"}, "instance_id", "either"},
		{"a host and a run", &remudav1.ExplainRunRequest{InstanceId: "i-1", Repository: "acme/app", RunId: "1"}, "instance_id", "either"},
		{"a job and half a run", &remudav1.ExplainRunRequest{JobId: 7, Repository: "acme/app"}, "run_id", "must be given with repository"},
		{"negative", &remudav1.ExplainRunRequest{JobId: -1}, "job_id", "greater"},
		{"both", &remudav1.ExplainRunRequest{Repository: "acme/app", RunId: "1", InstanceId: "i-1"}, "instance_id", "either"},
		{"with a run", &remudav1.ExplainRunRequest{RunId: "1", InstanceId: "i-1"}, "instance_id", "either"},
		{"with a repository", &remudav1.ExplainRunRequest{Repository: "acme/app", InstanceId: "i-1"}, "instance_id", "either"},
	}
}

func badWorkerRequests() []badRequest {
	const service, job, worker = "render", "job-1", "task-1"
	long := strings.Repeat("x", 513)
	return []badRequest{
		{"empty", &remudav1.SubmitJobRequest{}, "service", "pattern"},
		{"slash", &remudav1.SubmitJobRequest{Service: service, JobId: "a/b"}, "job_id", "pattern"},
		{"too long", &remudav1.SubmitJobRequest{Service: service, Payload: make([]byte, 65537)}, "payload", "at most 65536"},
		{"empty", &remudav1.HeartbeatRequest{WorkerId: worker}, "service", "pattern"},
		{"empty", &remudav1.HeartbeatRequest{Service: service}, "worker_id", "pattern"},
		{"too long", &remudav1.HeartbeatRequest{Service: service, WorkerId: worker, Version: strings.Repeat("1", 65)}, "version", "at most 64"},
		{"empty", &remudav1.ClaimJobRequest{WorkerId: worker}, "service", "pattern"},
		{"space", &remudav1.ClaimJobRequest{Service: service, WorkerId: "a b"}, "worker_id", "pattern"},
		{"too long", &remudav1.ClaimJobRequest{Service: service, WorkerId: worker, Version: strings.Repeat("1", 65)}, "version", "at most 64"},
		{"empty", &remudav1.AppendJobLogRequest{Attempt: 1, JobId: job, WorkerId: worker}, "service", "pattern"},
		{"empty", &remudav1.AppendJobLogRequest{Attempt: 1, Service: service, WorkerId: worker}, "job_id", "pattern"},
		{"empty", &remudav1.AppendJobLogRequest{Attempt: 1, Service: service, JobId: job}, "worker_id", "pattern"},
		{"negative", &remudav1.AppendJobLogRequest{Attempt: 1, Service: service, JobId: job, WorkerId: worker, Offset: -1}, "offset", "greater than or equal to 0"},
		{"too long", &remudav1.AppendJobLogRequest{Attempt: 1, Service: service, JobId: job, WorkerId: worker, Lines: strings.Repeat("é", 32769)}, "lines", "at most 65536"},
		{"missing", &remudav1.AppendJobLogRequest{Service: service, JobId: job, WorkerId: worker}, "attempt", "greater than or equal to 1"},
		{"empty", &remudav1.FinishJobRequest{Attempt: 1, JobId: job, WorkerId: worker}, "service", "pattern"},
		{"empty", &remudav1.FinishJobRequest{Attempt: 1, Service: service, WorkerId: worker}, "job_id", "pattern"},
		{"empty", &remudav1.FinishJobRequest{Attempt: 1, Service: service, JobId: job}, "worker_id", "pattern"},
		{"too long", &remudav1.FinishJobRequest{Attempt: 1, Service: service, JobId: job, WorkerId: worker, Reason: long}, "reason", "at most 512"},
		{"missing", &remudav1.FinishJobRequest{Service: service, JobId: job, WorkerId: worker}, "attempt", "greater than or equal to 1"},
		{"empty", &remudav1.GetJobRequest{JobId: job}, "service", "pattern"},
		{"empty", &remudav1.GetJobRequest{Service: service}, "job_id", "pattern"},
		{"empty", &remudav1.ListJobsRequest{}, "service", "pattern"},
		{"unspecified", &remudav1.ListJobsRequest{Service: service, States: make([]remudav1.WorkerJobState, 1)}, "states[0]", "not be in list"},
		{"too many", &remudav1.ListJobsRequest{Service: service, PageSize: 101}, "page_size", "less than or equal to 100"},
		{"too long", &remudav1.ListJobsRequest{Service: service, PageToken: strings.Repeat("t", 2049)}, "page_token", "at most 2048"},
		{"empty", &remudav1.ListWorkersRequest{}, "service", "pattern"},
		{"negative", &remudav1.ListWorkersRequest{Service: service, PageSize: -1}, "page_size", "greater than or equal to 0"},
		{"too long", &remudav1.ListWorkersRequest{Service: service, PageToken: strings.Repeat("t", 2049)}, "page_token", "at most 2048"},
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	for _, bad := range badRequests() {
		t.Run(fmt.Sprintf("%s/%s/%s", bad.req.ProtoReflect().Descriptor().Name(), bad.field, bad.name), func(t *testing.T) {
			err := protovalidate.Validate(bad.req)
			var invalid *protovalidate.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("Validate = %v, want a ValidationError", err)
			}
			want := bad.field + ": "
			if got := violations(invalid); !slices.ContainsFunc(got, func(s string) bool {
				return strings.HasPrefix(s, want) && strings.Contains(s, bad.rule)
			}) {
				t.Errorf("violations %q, want one that begins with %q and says %q", got, want, bad.rule)
			}
		})
	}
}

// violations are the broken rules, each led by the name of its field.
func violations(err *protovalidate.ValidationError) []string {
	var all []string
	for _, v := range err.Violations {
		all = append(all, v.String())
	}
	return all
}

// TestEveryFieldIsTested fails when a request has a field that no bad request breaks. Booleans cannot be wrong.
func TestEveryFieldIsTested(t *testing.T) {
	broken := map[protoreflect.FullName]bool{}
	for _, bad := range badRequests() {
		field, _, _ := strings.Cut(bad.field, "[")
		broken[bad.req.ProtoReflect().Descriptor().FullName().Append(protoreflect.Name(field))] = true
	}
	fleet := remudav1.File_remuda_v1_fleet_service_proto.Services().ByName("FleetService")
	workers := remudav1.File_remuda_v1_worker_service_proto.Services().ByName("WorkerService")
	for _, service := range []protoreflect.ServiceDescriptor{fleet, workers} {
		for i := range service.Methods().Len() {
			fields := service.Methods().Get(i).Input().Fields()
			for j := range fields.Len() {
				field := fields.Get(j)
				if field.Kind() != protoreflect.BoolKind && !broken[field.FullName()] {
					t.Errorf("no bad request breaks %s", field.FullName())
				}
			}
		}
	}
}
