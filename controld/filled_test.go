package main

import (
	"reflect"
	"testing"
)

// everything uses all that a configuration can ask for, at organization scope; those of a fleet on this machine cannot receive notices, nor run a
// script after a release.
const everything = `
github: {scope: organisation, runner_group: builders, repositories: [acme/shop], ca_file: DIR/ca.pem, url: "https://ghes.acme.com/api/v3"}
callers:
  audience: "https://remuda.acme.com"
  operators: [{subject: CN=alice, role: viewer}]
  repositories: [{repository_id: 1, repository: acme/shop, owner_id: 2, events: [push], refs: ["**"], workflows: ["**"], labels: [gpu], pools: [default],
    resource_classes: [large], usage_classes: [spot], spot_for_pull_requests: true, forks: true, webhook: true}]
grpc: {tls: {cert_file: DIR/tls.pem, key_file: DIR/tls.key, client_ca_file: DIR/ca.pem}}
webhooks: {secret_file: DIR/secret}
page:
  token_file: DIR/worker
  oidc: {issuer: "https://login.acme.com", client_id: remuda, client_secret_file: DIR/token, redirect_url: "https://ci.acme.com/ui/oidc/callback", session_key_file: DIR/worker,
    emails: [alice@acme.com], domains: [acme.org], groups: [ops]}
tracing: {endpoint: "https://collector:4317", ca_file: DIR/ca.pem, headers_file: DIR/headers}
scale_down: {idle_confirmation: 1m, idle: [{cron: "* * 9 * * *", idle_count: 1}]}
limits: {hosts_per_repository: 5, hosts_per_owner: 6, budgets: [{owner: acme, dollars_per_month: 500}]}
cost: {prices: [{instance_type: c6i.*, dollars_per_hour: 0.05}], call_prices: [{unit: sqs-request, dollars_per_million: 0.4}]}
pools:
  default:
    {reuse: same-owner, instance_types: [c6i.*], default_labels: true, rerun_interrupted: true, maximum: 9, max_uses: 5, max_age: 5h, stopped: {maximum: 3, minimum: 1, schedules: [{cron: "* * 8 * * *", idle_count: 2}]},
      spot_breaker: {interruptions: 3}, pre_runner: DIR/before.sh,
      caches: [{name: go, paths: [~/go/pkg/mod], size_mib: 4096, scope: owner, from: [main], keep: 24h}],
      warm: {usage_class: spot, allow_on_demand_fallback: true, minimum_idle: 1, schedules: [{cron: "* * 8 * * *", idle_count: 2}]},
      jobs: {labels: [small], maximum: 5, minimum: 1, registered_minimum: true, repositories: [acme/shop], usage_class: spot, allow_on_demand_fallback: true, forks: true}}
  docker: {instance_types: [c6i.*], privileged: true, reset: root-volume}
services:
  render: {region: eu-west-1, cluster: c, ecs_service: s, worker_token_file: DIR/worker, nudge_token_file: DIR/nudge, requeue: true, labels: [gpu]}
`

const everythingInAWS = everything + `
aws:
  notices: true
  tags: {team: ci}
  ec2: {kms_key_id: alias/ci, cpu_baseline: c6i, burstable: true, tags: {team: ci}}
`

// TestEveryOptionIsFilled: with a file that uses everything, no part is left without something that it could be given, except what is named here with the reason.
func TestEveryOptionIsFilled(t *testing.T) {
	b := newBench(t)
	inAWS, err := b.make(b.file(smallestAWS, everythingInAWS, "pools: {default: {post_release: DIR/after.sh, jobs_read_metadata: true}}"))
	if err != nil {
		t.Fatal(err)
	}
	local, err := b.make(b.file(smallestLocal, everything, "compute: {process: {boot_delay: 1s, capacity: {c6i.*: 1}, spot_capacity: {c6i.*: 1}, environment: {X: y}}}"))
	if err != nil {
		t.Fatal(err)
	}
	withApp, err := b.make(b.file(smallestLocal, withApp, "github: {check_runs_after: 2m}"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := tokenOptions(inAWS.c, inAWS.in)
	const (
		ofTests     = "it is for tests"
		defaults    = "its own default is meant"
		takesApp    = "it takes an App"
		ofSnapshots = "it is for a fleet that is read from a file"
		ofTurn      = "each turn fills it in"
		hasSpot     = "a pool with spot hosts does not hibernate"
		hasCaches   = "a pool with caches is not privileged; the pool docker is"
	)
	if err := inAWS.d.ready(t.Context()); err == nil {
		t.Error("a store that refuses every call counts as ready")
	}
	if !inAWS.fleet.Pools["docker"].Privileged || !local.fleet.Pools["docker"].Privileged || !inAWS.aws.compute.Pools["docker"].Privileged {
		t.Error("a part does not take privileged of the pool docker")
	}
	for name, part := range map[string]struct {
		options any
		left    map[string]string
	}{
		"fleet": {inAWS.fleet, map[string]string{
			"RandomText": ofTests, "AtOnce": defaults, "Rand": ofTests, "Checks": takesApp,
		}},
		"fleet here": {local.fleet, map[string]string{
			"RandomText": ofTests, "Rand": ofTests, "Checks": takesApp, "TemplateVersion": "there are no templates", "Exhausted": "it sells what it has",
			"Ensure": "there is nothing to make", "HostKey": "it is the instance id", "Notices": "EC2 sends them", "LaunchRate": "launches have no limit of calls", "Outside": "its pools have no bounds but their lists",
			"ClockOffset": "the store is on the same machine", "CallsMade": "nothing of AWS is called",
		}},
		"checks":   {*withApp.fleet.Checks, nil},
		"timing":   {inAWS.fleet.Timing, map[string]string{"Poll": defaults, "Takeover": defaults, "Relaunch": defaults, "KeepRequests": defaults, "PauseLag": defaults}},
		"jobs":     {*inAWS.fleet.Jobs, nil},
		"job pool": {inAWS.fleet.Jobs.Pools["default"], nil},
		"job spec": {inAWS.fleet.Jobs.Pools["default"].Spec, map[string]string{
			"Count": ofTurn, "MinimumCount": ofTurn, "Labels": ofTurn, "RunAttempt": ofTurn, "Pool": ofTurn, "Timeout": ofTurn, "JobsOf": ofTurn, "Forks": ofTurn,
			"MaxRuntime": defaults, "ReplaceInterrupted": "it is for runs",
		}},
		"rule":         {inAWS.fleet.Jobs.Rules[0], nil},
		"pool":         {inAWS.fleet.Pools["default"], map[string]string{"Privileged": hasCaches}},
		"pool here":    {local.fleet.Pools["default"], map[string]string{"Privileged": hasCaches}},
		"policy":       {inAWS.fleet.Pools["default"].Policy, map[string]string{"Cloud": "EC2", "Hibernates": hasSpot, "DockerCache": hasCaches}},
		"policy here":  {local.fleet.Pools["default"].Policy, map[string]string{"KeepsTrust": "no job has the credentials of a machine", "Hibernates": hasSpot, "DockerCache": hasCaches}},
		"warm":         {*inAWS.fleet.Pools["default"].Warm, nil},
		"warm policy":  {inAWS.fleet.Pools["default"].Warm.Policy, map[string]string{"Maximum": "it is the pool's", "Key": "it is minimum_idle"}},
		"stopped":      {*inAWS.fleet.Pools["default"].Stopped, nil},
		"spot breaker": {inAWS.fleet.Pools["default"].SpotBreaker, nil},
		"limits":       {inAWS.fleet.Limits, nil},
		"scale-down":   {*inAWS.fleet.ScaleDown, map[string]string{"PlanOnly": ofSnapshots, "Taken": ofSnapshots}},
		"idle policy":  {inAWS.fleet.ScaleDown.Policy, nil},
		"services":     {*inAWS.fleet.Services, nil},
		"service":      {inAWS.fleet.Services.Services["render"], map[string]string{"Stalled": "it is for a queue elsewhere"}},
		"workers":      {*inAWS.fleet.Workers, map[string]string{"Queued": defaults}},
		"queue calls":  {inAWS.fleet.Queue, nil},
		"EC2 calls":    {inAWS.fleet.Compute, nil},
		"GitHub calls": {inAWS.fleet.GitHub, nil},
		"runner calls": {inAWS.fleet.ScaleDown.GitHub, nil},
		"job slots":    {inAWS.fleet.Jobs.Pools["default"].JobPool, nil},
		"backlog":      {inAWS.fleet.Services.Services["render"].Backlog, nil},
		"calls":        {inAWS.d.calls("queue"), nil},
		"ECS calls":    {inAWS.fleet.Services.Scaler, nil},

		"server":  {inAWS.server, map[string]string{"Now": ofSnapshots, "Patience": defaults, "ReadyEvery": defaults}},
		"callers": {inAWS.server.Callers, nil},
		"tokens":  {tokens, map[string]string{"Now": ofTests}},
		"client":  {*tokens.Client, map[string]string{"CheckRedirect": "idtoken sets it", "Jar": "there are no cookies"}},
		"web":     {inAWS.web, nil},
		"hooks":   {*inAWS.web.Webhooks, map[string]string{"Now": ofTests}},
		"nudges":  {*inAWS.web.Scale, nil},
		"page":    {inAWS.d.pageOptions(inAWS.c), map[string]string{"Now": ofTests}},
		"sign-in": {*inAWS.d.pageOptions(inAWS.c).SignIn, map[string]string{"Path": "the page has it", "Log": "the page has it", "Now": ofTests, "Client": defaults}},
		"people":  {inAWS.d.pageOptions(inAWS.c).SignIn.Allowed, nil},
		"gauges":  {inAWS.d.gauges(inAWS.c), map[string]string{"mu": "its own", "last": "its own"}},

		"presence": {inAWS.d.presence, map[string]string{"seen": "its own", "beats": "its own", "count": "its own"}},
		"daemon":   {inAWS.d, nil},
		"backends": {inAWS.d.backends, map[string]string{"endHosts": "hosts outlive the daemon", "atOnce": defaults}},
		"backends here": {local.d.backends, map[string]string{
			"hostKey": "it is the instance id", "templateVersion": "there are no templates", "exhausted": "it sells what it has", "ensure": "there is nothing to make",
			"notices": "EC2 sends them", "keepRole": "hosts have none", "probe": "there is no account", "launchRate": "launches have no limit of calls", "outside": "its pools have no bounds but their lists",
			"clockOffset": "the store is on the same machine", "region": "it is in none", "calls": "nothing of AWS is called",
		}},
		"prices":          {*inAWS.fleet.Prices, nil},
		"GitHub":          {inAWS.github, map[string]string{"Apps": "it has a token"}},
		"GitHub with App": {withApp.github, map[string]string{"Token": "it has an App", "Organization": "it is at repository scope", "RunnerGroup": "it is at repository scope"}},
		"processes":       {local.process, map[string]string{"Env": defaults, "ReadOnly": "the daemon writes", "RestartDelay": defaults, "Now": ofTests}},
		"placement":       {local.process.Limits, map[string]string{"Arch": "this machine's own"}},
		"agent":           {local.agent(), map[string]string{"InstanceID": "the machine's", "HostKey": "the machine's"}},
		"tables":          {inAWS.store, map[string]string{"Now": ofTests}},
		"EC2":             {inAWS.aws.compute, map[string]string{"Rates": defaults, "Now": ofTests}},
		"EC2 pool":        {inAWS.aws.compute.Pools["default"], map[string]string{"Privileged": hasCaches, "HibernateMiB": hasSpot}},
		"queues":          {inAWS.aws.queue, map[string]string{"Visibility": defaults}},
		"notices":         {*inAWS.aws.notices, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := reflect.Indirect(reflect.ValueOf(part.options))
			for i := range v.NumField() {
				field := v.Type().Field(i).Name
				if v.Field(i).IsZero() && part.left[field] == "" {
					t.Errorf("%s is left out", field)
				}
			}
			for field := range part.left {
				if f := v.FieldByName(field); !f.IsValid() || !f.IsZero() {
					t.Errorf("%s is filled, or not there: take it off the list", field)
				}
			}
		})
	}
}
