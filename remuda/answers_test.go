package main

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// answer is what the command, the RPC and the page say about a question of docs/operations.md.
type answer struct {
	// req is what the RPC is called with, and path is where the page has the answer.
	req  proto.Message
	path string
	// same are texts that all three have. The rest of the fact each says in its own way: the command, the message as JSON, and the page.
	same                   []string
	command, message, page string
}

const (
	paused    = "pool jobs is paused since 2026-11-27T11:59:00Z by CN=ops (a new image)"
	cutShort  = "it has taken 0, with 5m0s left: the last launch was short: no capacity"
	noCluster = "it is not scaled here: the configuration names no cluster"
	stale     = "changed since controld has read it: restart controld"
	appKey    = "/etc/remuda/credentials/app.pem"
	tookBack  = "EC2 took the machine back"
	justNow   = "the job of the test has begun"
)

// answers are those of newDay, by question.
var answers = map[string]answer{
	"What runs, and which runs have hosts?": {
		req: &remudav1.ListInstancesRequest{}, path: "/ui/runs", same: []string{"acme/shop", "41", "50"}, command: "1/2", message: `"runId":"41"`, page: "1/2",
	},
	"Which hosts are there, and what happens next?": {
		req: &remudav1.ListInstancesRequest{}, path: "/ui/hosts", same: []string{itsHost},
		command: "maximum runtime in 1h", message: `"threshold":"2026-11-27T13:00:00Z"`, page: "maximum runtime in 1h",
	},
	"What happens now?": {req: &remudav1.WatchFleetRequest{}, path: "/ui/", same: []string{itsHost, justNow}},
	"What changed in the last hour?": {
		req: &remudav1.ListEventsRequest{Since: durationpb.New(time.Hour)}, path: "/ui/history", same: []string{endedHost, "11:50:00"},
		command: tookBack, message: tookBack, page: "running from 11:00:00 to 11:50:00",
	},
	"What waits for hosts, and what happens next?": {req: &remudav1.ListWaitingRequest{}, path: "/ui/waiting", same: []string{"test (8)", paused}},
	"Why does this run wait?": {
		req: &remudav1.ExplainRunRequest{Repository: "acme/shop", RunId: "39"}, path: "/ui/run/acme/shop/39", same: []string{cutShort},
	},
	"Why does this job wait?": {req: &remudav1.ExplainRunRequest{JobId: 8}, path: "/ui/waiting", same: []string{"test (8)", paused, "pool_paused"}},
	"Why is this host here?": {
		req: &remudav1.ExplainRunRequest{InstanceId: itsHost}, path: "/ui/host/" + itsHost,
		same: []string{"serves run 41 of acme/shop", "terminate, since: its maximum runtime of 2h0m0s is over"},
	},
	"What ended that host?": {req: &remudav1.ListEventsRequest{InstanceId: endedHost}, path: "/ui/host/" + endedHost, same: []string{endedHost, tookBack}},
	"Is the pool large enough?": {
		req: &remudav1.ListPoolsRequest{}, path: "/ui/", same: []string{"default", "20"}, command: "1/2", message: `"freshCount":1,"wantedFreshCount":2,"maximum":20`, page: "1/2",
	},
	"What would the scale-down do now?": {
		req: &remudav1.PlanScaleDownRequest{}, path: "/ui/plan", same: []string{"i-interrupted", "idle for the first time: it goes if it still is in 2m0s"},
	},
	"What happens at night?": {
		req: &remudav1.PlanScaleDownRequest{DecideTime: timestamppb.New(noon.Add(14 * time.Hour))}, path: "/ui/plan?at=02:00",
		same:    []string{itsHost, "2026-11-28T02:00:00Z", "idle, beyond the 0 that are kept so for its owner"},
		command: "default  1       fresh host", message: `{"pool":"default","wantedFreshCount":1}`, page: "default 1 fresh host",
	},
	"What would a refresh do?": {req: &remudav1.RefreshRequest{DryRun: true}, path: "/ui/plan", same: []string{"i-orphan", "an orphan that has no runner id"}},
	"What did it cost, and who used it?": {
		req: &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_REPOSITORY, Since: "2026-10-29"}, path: "/ui/cost?by=repository&days=30", same: []string{"acme/shop", "0.85"},
	},
	"What did that run cost?": {
		req:  &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_RUN, Since: "2026-10-29", Repository: "acme/shop", RunId: "12"},
		path: "/ui/cost?by=run&repository=acme/shop", command: "acme/shop/12  1        build     0.0305", message: `"busy":"3600s","clean":"0s","dollars":0.0304`, page: "acme/shop/12 1 build 0.0305",
	},
	"Who is over budget?": {
		req: &remudav1.ListBudgetsRequest{}, path: "/ui/cost", same: []string{"acme/shop", "0.85"},
		command: "85%   near", message: "BUDGET_STATE_NEAR", page: "85% near",
	},
	"Do the services on ECS have their runners?": {req: &remudav1.ListServicesRequest{}, path: "/ui/services", same: []string{"render", noCluster}},
	"Keep this host for a look": {
		req: &remudav1.HoldInstanceRequest{InstanceId: itsHost, Duration: durationpb.New(2 * time.Hour)}, path: "/ui/hosts", same: []string{itsHost},
		command: "running,held", message: `"holdTime":"2026-11-27T14:00:00Z"`, page: itsHost + " running,held",
	},
	"Let nothing end, until I know why": {
		req: &remudav1.HoldFleetRequest{Duration: durationpb.New(time.Hour)}, path: "/ui/server", same: []string{"2026-11-27T13:00:00Z"},
		command: "No host is ended before", page: "No host is ended until",
	},
	"Take this host out of service": {
		req: &remudav1.DrainRequest{InstanceId: itsHost}, path: "/ui/hosts", command: "1 drained", message: `"drainedCount":1`, page: itsHost + " running,retiring",
	},
	"Renew the hosts of that pool": {
		req: &remudav1.DrainRequest{Pool: "default"}, path: "/ui/hosts", command: "10 drained", message: `"drainedCount":10`, page: "i-pooled pooled,retiring",
	},
	"Give nothing out from that pool": {
		req: &remudav1.PausePoolRequest{Pool: "default", Reason: "a new image"}, path: "/ui/", command: "Pool default is paused",
		message: `"beginTime":"2026-11-27T12:00:00Z"`, page: "pool default is paused since 2026-11-27T12:00:00Z by loopback (a new image)",
	},
	"Give out from it again": {
		req: &remudav1.ResumePoolRequest{Pool: "jobs"}, path: "/ui/", command: "Pool jobs gives out hosts", message: "{}", page: "pool jobs was resumed by loopback",
	},
	"End this host now, with its job": {
		req: &remudav1.TerminateInstanceRequest{InstanceId: itsHost, Reason: "stuck"}, path: "/ui/host/" + itsHost, same: []string{itsHost},
		command: "ended", message: "STATE_TERMINATED", page: "is terminated since 12:00:00Z (0s ago): ordered: stuck",
	},
	"Give back what a run forgot": {
		req: &remudav1.ReleaseRequest{Repository: "acme/shop", RunId: "41"}, path: "/ui/run/acme/shop/41", same: []string{itsHost},
		command: "releasing", message: "STATE_IDLE", page: "run 41 was released",
	},
	"Does controld work, and may I call it?": {
		req: &remudav1.GetStatusRequest{}, path: "/ui/server", same: []string{"controld-1"}, command: "controld serves", message: `"answering":true`, page: "right yes",
	},
	"Is the new key in use?": {
		req: &remudav1.GetStatusRequest{}, path: "/ui/server", same: []string{"github.apps[0].private_key_file", appKey}, command: stale, message: `"outdated":true`, page: stale,
	},
	"Which version runs, on all replicas?": {
		req: &remudav1.GetStatusRequest{}, path: "/ui/server", same: []string{"controld-1", "1.2.3"}, command: "(1.2.3, since ", message: `"version":"1.2.3"`, page: "controld-1 1.2.3",
	},
}
