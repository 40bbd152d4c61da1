package main

import (
	"fmt"
	"github.com/remuda-ci/remuda/internal/tracing"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/config/inventory"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/page/signin"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// effect is what a key changes, in the words of the part that it is for.
type effect func(w *wired) any

// keyRow is a key, a value of it that is not its default, and its effect.
type keyRow struct {
	key, value string
	// with is what else the file must have.
	with string
	aws  bool // it is a fleet in AWS
	got  effect
	want any
	// refused is what serve says where the value is one that it cannot start with.
	refused string
}

// both is the effect on two parts.
func both(a, b effect) effect { return func(w *wired) any { return [2]any{a(w), b(w)} } }

func ofPolicy(get func(lifecycle.Policy) any) effect {
	return func(w *wired) any { return get(w.fleet.Pools["default"].Policy) }
}

func ofPool(get func(fleet.Pool) any) effect {
	return func(w *wired) any { return get(w.fleet.Pools["default"]) }
}

func ofEC2(get func(ec2.Pool) any) effect {
	return func(w *wired) any { return get(w.aws.compute.Pools["default"]) }
}

// ofCache is of the pool's cache, as the fleet and as the launch template have it.
func ofCache(get func(cache.Spec) any) effect {
	return both(ofPool(func(p fleet.Pool) any { return get(p.Caches[0]) }), ofEC2(func(p ec2.Pool) any { return get(p.Caches[0]) }))
}

func ofWarm(get func(fleet.WarmPool) any) effect {
	return func(w *wired) any { return get(*w.fleet.Pools["default"].Warm) }
}

func ofStopped(get func(fleet.WarmPool) any) effect {
	return func(w *wired) any { return get(*w.fleet.Pools["default"].Stopped) }
}

func ofJobs(get func(fleet.JobPool) any) effect {
	return func(w *wired) any { return get(w.fleet.Jobs.Pools["default"]) }
}

// withBudget and withOwnersBudget have one budget each.
const (
	withBudget       = "limits: {budgets: [{repository: acme/site, dollars_per_month: 1}]}"
	withOwnersBudget = "limits: {budgets: [{owner: other, dollars_per_month: 1}]}"
)

func ofBudget(get func(budget.Budget) any) effect {
	return func(w *wired) any { return get(w.fleet.Budgets[0]) }
}

// withTracing has a collector that takes no spans.
const withTracing = "tracing: {endpoint: \"https://127.0.0.1:1\"}\n"

// ofTracing is what spans are sent with.
func ofTracing(get func(tracing.Options) any) effect {
	return func(w *wired) any { return get(tracingOptions(w.c, w.in, "replica", w.d.log)) }
}

// withPrice has a price of each hour of every m5.
const withPrice = "cost: {prices: [{instance_type: m5.*, dollars_per_hour: 7}]}"

// ofPrice is what an hour of a type costs.
func ofPrice(instanceType, usageClass string) effect {
	return func(w *wired) any {
		dollars, _, _ := w.fleet.Prices.Of(instanceType, usageClass)
		return math.Round(dollars*1e6) / 1e6
	}
}

const withCallPrice = "cost: {call_prices: [{unit: sqs-request, dollars_per_million: 7}]}"

// ofMillion is what a million of a unit of calls to AWS costs.
func ofMillion(unit price.Unit) effect {
	return func(w *wired) any {
		dollars, _ := w.fleet.Prices.Million(unit)
		return dollars
	}
}

// withPeople is a page that alice may sign in to.
const withPeople = "page: {oidc: {issuer: \"https://login.acme.com\", client_id: remuda, redirect_url: \"https://ci.acme.com/ui/oidc/callback\", session_key_file: DIR/worker, emails: [alice@acme.com]}}\n"

func ofSignIn(get func(*signin.Options) any) effect {
	return func(w *wired) any { return get(w.d.pageOptions(w.c).SignIn) }
}

func ofService(get func(services.Service) any) effect {
	return func(w *wired) any { return get(w.fleet.Services.Services["render"]) }
}

func ofScaleDown(get func(policy.ScaleDown) any) effect {
	return func(w *wired) any { return get(w.fleet.ScaleDown.Policy) }
}

func ofTiming(get func(fleet.Timing) any) effect {
	return func(w *wired) any { return get(w.fleet.Timing) }
}

// ofRule looks at the first rule of callers, where calls and where queued jobs are judged.
func ofRule(get func(policy.Rule) any) effect {
	return both(func(w *wired) any { return get(w.server.Callers.Rules[0]) }, func(w *wired) any { return get(w.fleet.Jobs.Rules[0]) })
}

func twice(v any) [2]any { return [2]any{v, v} }

// What the file of a row must have beside its key.
const (
	withHooks    = "webhooks: {secret_file: DIR/secret}\n"
	withRule     = "callers: {audience: \"https://remuda.acme.com\", repositories: [{repository_id: 1, repository: acme/shop}]}\n"
	withCache    = "pools: {default: {caches: [{name: go, paths: [~/go/pkg/mod], size_mib: 4096}]}}\n"
	withWarm     = "pools: {default: {warm: {minimum_idle: 1}}}\n"
	withStopped  = "pools: {default: {stopped: {maximum: 5, schedules: [{cron: \"* * 8 * * *\", idle_count: 2}]}}}\n"
	withSchedule = "pools: {default: {warm: {schedules: [{cron: \"* * 8 * * *\", idle_count: 2}]}}}\n"
	withJobs     = withHooks + "pools: {default: {jobs: {labels: [small], maximum: 5, repositories: [acme/shop]}}}\n"
	withService  = "services: {render: {region: eu-west-1, cluster: c, ecs_service: s}}\n"
	withTable    = "services: {render: {region: eu-west-1, cluster: c, ecs_service: s, queue: {postgrest: {url: PLAIN, queued: jobs, busy: jobs}}}}\n"
	withStalled  = "services: {render: {region: eu-west-1, cluster: c, ecs_service: s, queue: {postgrest: {url: PLAIN, queued: jobs, busy: \"jobs?status=eq.running\", stalled: {}}}}}\n"
	withIdle     = "scale_down: {idle: [{cron: \"* * 9 * * *\"}]}\n"
	withApp      = "github: {token_file: null, apps: [{app_id: 1, private_key_file: DIR/app.pem}]}\n"
	withOperator = "grpc: {tls: {cert_file: DIR/tls.pem, key_file: DIR/tls.key, client_ca_file: DIR/ca.pem}}\ncallers: {operators: [{subject: CN=alice, role: viewer}]}\n"
)

// keyRows has at least one row for each key. A key that acts in two ways, or in both kinds of fleets, has several.
var keyRows = []keyRow{
	{key: "grpc.addr", value: "TAKEN", refused: "grpc.addr: 127.0.0.1:"},
	{key: "http.addr", value: "TAKEN", refused: "http.addr: 127.0.0.1:"},
	{key: "grpc.tls.cert_file", value: "/none.crt", with: "grpc: {tls: {key_file: DIR/tls.key}}", refused: "/none.crt"},
	{key: "grpc.tls.key_file", value: "/none.key", with: "grpc: {tls: {cert_file: DIR/tls.pem}}", refused: "/none.key"},
	{key: "grpc.tls.client_ca_file", value: "/none.ca", with: withOperator, refused: "/none.ca"},

	{key: "store.sqlite.path", value: "DIR/other.db", got: func(w *wired) any {
		_, err := os.Stat(w.b.dir + "/other.db")
		return []any{err, w.agent().Store.SQLite.Path == w.b.dir+"/other.db"}
	}, want: []any{nil, true}},
	{key: "compute.process.directory", value: "DIR/others", got: func(w *wired) any { return strings.TrimPrefix(w.process.Root, w.b.dir) }, want: "/others"},
	{key: "compute.process.agentd", value: "/bin/false", got: func(w *wired) any { return w.process.AgentPath }, want: "/bin/false"},
	{key: "compute.process.runner", value: "DIR/runner2", got: func(w *wired) any { return strings.TrimPrefix(w.agent().Runner.Distribution, w.b.dir) }, want: "/runner2"},
	{key: "compute.process.runner", value: "/none", refused: "compute.process.runner: /none"},
	{key: "compute.process.boot_delay", value: "3s", got: func(w *wired) any { return w.process.BootDelay }, want: 3 * time.Second},
	{key: "compute.process.zones", value: "[a, b]", got: func(w *wired) any { return w.process.Zones }, want: []string{"a", "b"}},
	{key: "compute.process.capacity.<pattern>", value: "7", got: func(w *wired) any { return w.process.Capacity }, want: map[string]int{"c6i.*": 7}},
	{key: "compute.process.spot_capacity.<pattern>", value: "7", got: func(w *wired) any { return w.process.SpotCapacity }, want: map[string]int{"c6i.*": 7}},
	{key: "compute.process.environment.<variable>", value: "y", got: func(w *wired) any { return w.agent().Runner.Env }, want: map[string]string{"X": "y"}},

	{key: "aws.region", value: "eu-north-1", aws: true, got: func(w *wired) any {
		_, _ = w.d.backends.store.Lease(w.t.Context(), "x") // it is refused, and heard
		w.b.mu.Lock()
		defer w.b.mu.Unlock()
		return w.b.scope[len(w.b.scope)-1]
	}, want: "dynamodb eu-north-1"},
	{key: "aws.prefix", value: "other", with: "aws: {notices: true}", aws: true, got: func(w *wired) any {
		return []string{w.store.Prefix, w.aws.compute.Prefix, w.aws.queue.Prefix, w.aws.notices.Prefix}
	}, want: []string{"other", "other", "other", "other"}},
	{key: "aws.instance_profile", value: "others", aws: true, got: func(w *wired) any { return []string{w.aws.compute.InstanceProfile, w.fleet.HostKey("i-1")} },
		want: []string{"others", "AROAEXAMPLE:i-1"}},
	{key: "aws.instance_profile", value: "others-of-iam", aws: true, got: func(w *wired) any {
		for _, call := range w.b.proxy.Calls() {
			if call.Operation == "GetInstanceProfile" && strings.Contains(string(call.Body), w.c.AWS.InstanceProfile) {
				return w.c.AWS.InstanceProfile
			}
		}
		return nil
	}, want: "others-of-iam"},
	{key: "aws.notices", value: "true", aws: true, got: func(w *wired) any {
		return []bool{w.fleet.Notices != nil, strings.Contains(strings.Join(w.ensured(), "\n"), "remuda-notices")}
	}, want: []bool{true, true}},
	{key: "aws.tags.<key>", value: "ci", with: "aws: {notices: true, ec2: {tags: {team: web}}}", aws: true, got: func(w *wired) any {
		return []any{w.store.Tags, w.aws.queue.Tags, w.aws.notices.Tags, w.aws.compute.Pools["default"].Tags}
	}, want: []any{map[string]string{"team": "ci"}, map[string]string{"team": "ci"}, map[string]string{"team": "ci"}, map[string]string{"team": "web"}}},
	{key: "aws.tags.<key>", value: "ci", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Tags }), want: map[string]string{"team": "ci"}},
	{key: "aws.ec2.images.<arch>", value: "ami-22222222", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Images["arm64"] }), want: "ami-22222222"},
	{key: "aws.ec2.subnets", value: "[subnet-22222222]", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Subnets }), want: []string{"subnet-22222222"}},
	{key: "aws.ec2.security_groups", value: "[sg-22222222]", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.SecurityGroups }), want: []string{"sg-22222222"}},
	{key: "aws.ec2.root_volume_gib", value: "70", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.RootVolumeGiB }), want: 70},
	{key: "aws.ec2.root_volume_iops", value: "7000", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.IOPS }), want: 7000},
	{key: "aws.ec2.root_volume_throughput", value: "300", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.ThroughputMiB }), want: 300},
	{key: "aws.ec2.cpu_baseline", value: "c6i", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.CPUBaseline }), want: "c6i"},
	{key: "aws.ec2.kms_key_id", value: "alias/ci", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.KMSKeyID }), want: "alias/ci"},
	{key: "aws.ec2.burstable", value: "true", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Burstable }), want: true},
	{key: "aws.ec2.tags.<key>", value: "ci", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Tags }), want: map[string]string{"team": "ci"}},

	{key: "github.url", value: "https://ghes.acme.com/api/v3", got: func(w *wired) any { return w.github.URL }, want: "https://ghes.acme.com/api/v3"},
	{key: "github.url", value: "PLAIN/api/v3", got: func(w *wired) any {
		releases, err := w.fleet.Releases(w.t.Context())
		return []any{len(releases), err}
	}, want: []any{1, nil}},
	{key: "github.ca_file", value: "DIR/ca.pem", with: "github: {url: \"https://ghes.acme.com/api/v3\"}\n" + withRule, got: func(w *wired) any {
		o := tokenOptions(w.c, w.in)
		return []any{w.trusts(w.github.Transport), w.trusts(o.Client.Transport)}
	}, want: []any{true, true}},
	{key: "github.scope", value: "organisation", with: withJobs + "scale_down: {}\npools: {default: {reuse: same-owner}}\ngithub: {repositories: [acme/a, acme/b]}", got: func(w *wired) any {
		return []any{w.github.Organization, w.fleet.Jobs.Scope("Acme/Shop"), w.fleet.ScaleDown.Scope("Acme/Shop"), w.fleet.Jobs.Pools["default"].Scope, w.fleet.Repositories}
	}, want: []any{true, "acme", "acme", "acme", []string{"acme/a"}}},
	{key: "github.runner_group", value: "builders", with: "github: {scope: organisation}", got: func(w *wired) any { return w.github.RunnerGroup }, want: "builders"},
	{key: "github.token_file", value: "DIR/token2", got: func(w *wired) any { return w.token() }, want: "token-two<nil>"},
	{key: "github.token_env", value: "REMUDA_TEST_VALUE", with: "github: {token_file: null}", got: func(w *wired) any { return w.token() }, want: "from-the-environment<nil>"},
	{key: "github.apps[].app_id", value: "2", with: withApp, got: func(w *wired) any { return w.github.Apps[0].AppID }, want: int64(2)},
	{key: "github.apps[].client_id", value: "Iv23liAbCdEf01234567", with: withApp + "github: {apps: [{app_id: null}]}", got: func(w *wired) any { return w.github.Apps[0].ClientID }, want: "Iv23liAbCdEf01234567"},
	{key: "github.apps[].private_key_file", value: "DIR/app2.pem", with: withApp, got: func(w *wired) any {
		return strings.HasSuffix(w.github.Apps[0].PrivateKey.Reveal(), "# two\n")
	}, want: true},
	{key: "github.apps[].private_key_env", value: "REMUDA_TEST_APP_KEY", with: withApp + "github: {apps: [{private_key_file: null}]}", got: func(w *wired) any {
		return strings.HasSuffix(w.github.Apps[0].PrivateKey.Reveal(), "# environment\n")
	}, want: true},
	{key: "github.check_runs_after", value: "7m", with: withApp, got: func(w *wired) any { return w.fleet.Checks.After }, want: 7 * time.Minute},
	{key: "github.repositories", value: "[acme/a, acme/b]", got: func(w *wired) any { return w.fleet.Repositories }, want: []string{"acme/a", "acme/b"}},

	{key: "callers.audience", value: "https://other.acme.com", with: withRule, got: func(w *wired) any {
		o := tokenOptions(w.c, w.in)
		return []any{w.server.Callers.Tokens != nil, o.Audience}
	}, want: []any{true, "https://other.acme.com"}},
	{key: "callers.issuer", value: "https://ghes.acme.com/_services/token", with: withRule, got: func(w *wired) any {
		o := tokenOptions(w.c, w.in)
		return []any{w.server.Callers.Tokens != nil, o.Issuer}
	}, want: []any{true, "https://ghes.acme.com/_services/token"}},
	{key: "callers.operators[].subject", value: "CN=bob", with: withOperator, got: func(w *wired) any { return w.server.Callers.Operators }, want: map[string]policy.Role{"CN=bob": "viewer"}},
	{key: "callers.operators[].role", value: "admin", with: withOperator, got: func(w *wired) any { return w.server.Callers.Operators }, want: map[string]policy.Role{"CN=alice": "admin"}},
	{key: "callers.repositories[].repository_id", value: "2", with: withRule, got: ofRule(func(r policy.Rule) any { return r.RepositoryID }), want: twice(int64(2))},
	{key: "callers.repositories[].repository", value: "acme/other", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Repository }), want: twice("acme/other")},
	{key: "callers.repositories[].owner_id", value: "3", with: withRule, got: ofRule(func(r policy.Rule) any { return r.OwnerID }), want: twice(int64(3))},
	{key: "callers.repositories[].events", value: "[push]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Events }), want: twice([]string{"push"})},
	{key: "callers.repositories[].refs", value: "[refs/heads/main]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Refs }), want: twice([]string{"refs/heads/main"})},
	{key: "callers.repositories[].workflows", value: "[a/b/c@d]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Workflows }), want: twice([]string{"a/b/c@d"})},
	{key: "callers.repositories[].labels", value: "[gpu]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Labels }), want: twice([]string{"gpu"})},
	{key: "callers.repositories[].pools", value: "[default]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Pools }), want: twice([]string{"default"})},
	{key: "callers.repositories[].resource_classes", value: "[large]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.ResourceClasses }), want: twice([]string{"large"})},
	{key: "callers.repositories[].usage_classes", value: "[spot]", with: withRule, got: ofRule(func(r policy.Rule) any { return r.UsageClasses }), want: twice([]lifecycle.UsageClass{"spot"})},
	{key: "callers.repositories[].max_hosts", value: "9", with: withRule, got: ofRule(func(r policy.Rule) any { return r.MaxHosts }), want: twice(9)},
	{key: "callers.repositories[].max_runtime", value: "9m", with: withRule, got: ofRule(func(r policy.Rule) any { return r.MaxRuntime }), want: twice(9 * time.Minute)},
	{key: "callers.repositories[].spot_for_pull_requests", value: "true", with: withRule, got: ofRule(func(r policy.Rule) any { return r.SpotForPullRequests }), want: twice(true)},
	{key: "callers.repositories[].forks", value: "true", with: withRule, got: ofRule(func(r policy.Rule) any { return r.Forks }), want: twice(true)},
	{key: "callers.repositories[].webhook", value: "true", with: withRule + withHooks, got: ofRule(func(r policy.Rule) any { return r.Webhook }), want: twice(true)},

	{key: "webhooks.secret_file", value: "DIR/secret2", with: withHooks, got: func(w *wired) any { return revealed(w.web.Webhooks.Secrets()) }, want: "secret-number-two<nil>"},
	{key: "webhooks.secret_file", value: "DIR/secret", got: func(w *wired) any { return w.fleet.Jobs != nil && w.fleet.Jobs.Parse != nil && w.web.Webhooks != nil }, want: true},
	{key: "webhooks.secret_env", value: "REMUDA_TEST_VALUE", got: func(w *wired) any {
		if w.web.Webhooks == nil {
			return nil
		}
		return revealed(w.web.Webhooks.Secrets())
	}, want: "from-the-environment<nil>"},

	{key: "resource_classes.<name>.cpu", value: "6", with: "resource_classes: {small: {cpu: 3, memory_mib: 3000}}", got: func(w *wired) any { return w.fleet.Classes["small"] }, want: fleet.Class{CPU: 6, MemoryMiB: 3000}},
	{key: "resource_classes.<name>.memory_mib", value: "6000", with: "resource_classes: {small: {cpu: 3, memory_mib: 3000}}", got: func(w *wired) any { return w.fleet.Classes["small"] }, want: fleet.Class{CPU: 3, MemoryMiB: 6000}},
	{key: "resource_classes.<name>.max_cpu", value: "48", with: "resource_classes: {small: {cpu: 3, memory_mib: 3000}}", got: func(w *wired) any { return w.fleet.Classes["small"] }, want: fleet.Class{CPU: 3, MemoryMiB: 3000, MaxCPU: 48}},
	{key: "resource_classes.<name>.max_memory_mib", value: "9000", with: "resource_classes: {small: {cpu: 3, memory_mib: 3000}}", got: func(w *wired) any { return w.fleet.Classes["small"] }, want: fleet.Class{CPU: 3, MemoryMiB: 3000, MaxMemoryMiB: 9000}},

	{key: "pools.<name>.resource_classes", value: "[xlarge]", with: "pools: {default: {usage_classes: [spot]}}", aws: true, got: func(w *wired) any {
		return []any{w.fleet.Pools["default"].ResourceClasses, w.aws.queue.Queues}
	}, want: []any{[]string{"xlarge"}, []lifecycle.QueueName{{ResourceClass: "xlarge", UsageClass: "spot"}}}},
	{key: "pools.<name>.usage_classes", value: "[spot]", with: "pools: {default: {resource_classes: [xlarge]}}", aws: true, got: func(w *wired) any {
		return []any{w.fleet.Pools["default"].UsageClasses, w.aws.queue.Queues}
	}, want: []any{[]lifecycle.UsageClass{"spot"}, []lifecycle.QueueName{{ResourceClass: "xlarge", UsageClass: "spot"}}}},
	{key: "pools.<name>.instance_types", value: "[c6i.*]", got: ofPool(func(p fleet.Pool) any { return p.InstanceTypes }), want: []string{"c6i.*"}},
	{key: "pools.<name>.reuse", value: "same-owner", got: ofPolicy(func(p lifecycle.Policy) any { return p.Reuse }), want: lifecycle.ReuseSameOwner},
	{key: "pools.<name>.privileged", value: "true", aws: true, got: both(ofPool(func(p fleet.Pool) any { return p.Privileged }), ofEC2(func(p ec2.Pool) any { return p.Privileged })), want: twice(true)},
	{key: "pools.<name>.jobs_read_metadata", value: "true", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.JobsReadMetadata }), want: true},
	{key: "pools.<name>.default_labels", value: "true", got: ofPool(func(p fleet.Pool) any { return p.DefaultLabels }), want: true},
	{key: "pools.<name>.max_uses", value: "4", got: ofPolicy(func(p lifecycle.Policy) any { return p.MaxUses }), want: 4},
	{key: "pools.<name>.reset", value: "root-volume", got: ofPolicy(func(p lifecycle.Policy) any { return p.Reset }), want: statement.LevelRootVolume},
	{key: "pools.<name>.awake", value: "50", got: ofPolicy(func(p lifecycle.Policy) any { return p.Awake }), want: 50},
	{key: "pools.<name>.stopped.maximum", value: "7", got: ofPolicy(func(p lifecycle.Policy) any { return p.StoppedMaximum }), want: 7},
	{key: "pools.<name>.stopped.minimum", value: "2", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Policy.MinimumIdle }), want: 2},
	{key: "pools.<name>.stopped.resource_class", value: "xlarge", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Spec.ResourceClass }), want: "xlarge"},
	{key: "pools.<name>.stopped.instance_types", value: "[c6i.*]", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Spec.InstanceTypes }), want: []string{"c6i.*"}},
	{key: "pools.<name>.stopped.schedules[].cron", value: "\"* * 7 * * *\"", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].Cron }), want: "* * 7 * * *"},
	{key: "pools.<name>.stopped.schedules[].time_zone", value: "Europe/Berlin", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].TimeZone }), want: "Europe/Berlin"},
	{key: "pools.<name>.stopped.schedules[].idle_count", value: "3", with: withStopped, got: ofStopped(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].IdleCount }), want: 3},
	{key: "pools.<name>.stopped.hibernate", value: "true", with: "pools: {default: {usage_classes: [on-demand], resource_classes: [large], stopped: {maximum: 1}}}", aws: true,
		got: both(ofPolicy(func(p lifecycle.Policy) any { return p.Hibernates }), ofEC2(func(p ec2.Pool) any { return p.HibernateMiB > 0 })), want: twice(true)},
	{key: "pools.<name>.stopped.time", value: "8h", with: "pools: {default: {stopped: {maximum: 1}}}", got: ofPolicy(func(p lifecycle.Policy) any { return p.StoppedTime }), want: 8 * time.Hour},
	{key: "pools.<name>.max_age", value: "4h", got: ofPolicy(func(p lifecycle.Policy) any { return p.MaxAge }), want: 4 * time.Hour},
	{key: "pools.<name>.drift", value: "ignore", got: ofPolicy(func(p lifecycle.Policy) any { return p.Drift }), want: lifecycle.DriftIgnore},
	{key: "pools.<name>.standby", value: "clean", got: ofPolicy(func(p lifecycle.Policy) any { return p.Standby }), want: lifecycle.StandbyClean},
	{key: "pools.<name>.rerun_interrupted", value: "true", with: withHooks, got: ofPool(func(p fleet.Pool) any { return p.RerunInterrupted }), want: true},
	{key: "pools.<name>.max_runtime", value: "40m", got: ofPolicy(func(p lifecycle.Policy) any { return p.MaxRuntime }), want: 40 * time.Minute},
	{key: "pools.<name>.max_runtime", value: "40m", with: withRule, got: ofRule(func(r policy.Rule) any { return r.MaxRuntime }), want: twice(40 * time.Minute)},
	{key: "pools.<name>.idle_time", value: "40m", aws: true, got: both(ofPolicy(func(p lifecycle.Policy) any { return p.IdleTime }), func(w *wired) any { return w.aws.queue.Retention }),
		want: [2]any{40 * time.Minute, 42 * time.Minute}},
	{key: "pools.<name>.pre_runner", value: "DIR/before.sh", aws: true, got: ofEC2(func(p ec2.Pool) any { return string(p.PreRunner) }), want: "#!/bin/sh\n: before\n"},
	{key: "pools.<name>.pre_runner", value: "DIR/before.sh", got: func(w *wired) any { return strings.TrimPrefix(w.agent().PreRunner.Script, w.b.dir) }, want: "/before.sh"},
	{key: "pools.<name>.post_release", value: "DIR/after.sh", aws: true, got: ofEC2(func(p ec2.Pool) any { return string(p.PostRelease) }), want: "#!/bin/sh\n: after\n"},
	{key: "pools.<name>.caches[].name", value: "gomod", with: withCache, aws: true, got: ofCache(func(s cache.Spec) any { return s.Name }), want: twice("gomod")},
	{key: "pools.<name>.caches[].paths", value: "[~/go]", with: withCache, aws: true, got: ofCache(func(s cache.Spec) any { return s.Paths }), want: twice([]string{"~/go"})},
	{key: "pools.<name>.caches[].holds", value: "tools", with: "pools: {default: {caches: [{name: tools, size_mib: 4096}]}}\n", aws: true, got: ofCache(func(s cache.Spec) any { return s.Holds }), want: twice(cache.HoldsTools)},
	{key: "pools.<name>.caches[].size_mib", value: "2", with: withCache, aws: true, got: ofCache(func(s cache.Spec) any { return s.Size }), want: twice(uint64(2 << 20))},
	{key: "pools.<name>.caches[].scope", value: "owner", with: withCache + "pools: {default: {reuse: same-owner}}\n", aws: true, got: ofCache(func(s cache.Spec) any { return s.Scope }), want: twice(cache.ScopeOwner)},
	{key: "pools.<name>.caches[].from", value: "[main]", with: withCache, aws: true, got: ofCache(func(s cache.Spec) any { return s.From }), want: twice([]string{"main"})},
	{key: "pools.<name>.caches[].keep", value: "4h", with: withCache, aws: true, got: ofCache(func(s cache.Spec) any { return s.Keep }), want: twice(4 * time.Hour)},
	{key: "pools.<name>.caches[].name", value: "gomod", with: withCache, got: func(w *wired) any { return w.agent().Caches[0].Name }, want: "gomod"},
	{key: "pools.<name>.ec2.images.<arch>", value: "ami-33333333", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Images }), want: map[string]string{"arm64": "ami-33333333"}},
	{key: "pools.<name>.ec2.subnets", value: "[subnet-33333333]", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Subnets }), want: []string{"subnet-33333333"}},
	{key: "pools.<name>.ec2.security_groups", value: "[sg-33333333]", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.SecurityGroups }), want: []string{"sg-33333333"}},
	{key: "pools.<name>.ec2.root_volume_gib", value: "80", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.RootVolumeGiB }), want: 80},
	{key: "pools.<name>.ec2.root_volume_iops", value: "8000", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.IOPS }), want: 8000},
	{key: "pools.<name>.ec2.root_volume_throughput", value: "400", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.ThroughputMiB }), want: 400},
	{key: "pools.<name>.ec2.cpu_baseline", value: "m7g", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.CPUBaseline }), want: "m7g"},
	{key: "pools.<name>.ec2.kms_key_id", value: "alias/own", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.KMSKeyID }), want: "alias/own"},
	{key: "pools.<name>.ec2.burstable", value: "true", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Burstable }), want: true},
	{key: "pools.<name>.ec2.tags.<key>", value: "own", with: "aws: {ec2: {tags: {team: ci, more: x}}}", aws: true, got: ofEC2(func(p ec2.Pool) any { return p.Tags }), want: map[string]string{"team": "own", "more": "x"}},
	{key: "pools.<name>.maximum", value: "12", got: ofPool(func(p fleet.Pool) any { return p.Maximum }), want: new(12)},
	{key: "pools.<name>.spot_breaker.interruptions", value: "3", got: ofPool(func(p fleet.Pool) any { return p.SpotBreaker.Interruptions }), want: 3},
	{key: "pools.<name>.spot_breaker.within", value: "3m", got: ofPool(func(p fleet.Pool) any { return p.SpotBreaker.Within }), want: 3 * time.Minute},
	{key: "pools.<name>.spot_breaker.pause", value: "3m", got: ofPool(func(p fleet.Pool) any { return p.SpotBreaker.Pause }), want: 3 * time.Minute},

	{key: "pools.<name>.warm.resource_class", value: "xlarge", with: withWarm, got: ofWarm(func(p fleet.WarmPool) any { return p.Spec.ResourceClass }), want: "xlarge"},
	{key: "pools.<name>.warm.usage_class", value: "spot", with: withWarm, got: ofWarm(func(p fleet.WarmPool) any { return p.Spec.UsageClass }), want: lifecycle.UsageSpot},
	{key: "pools.<name>.warm.instance_types", value: "[c6i.*]", with: withWarm, got: ofWarm(func(p fleet.WarmPool) any { return p.Spec.InstanceTypes }), want: []string{"c6i.*"}},
	{key: "pools.<name>.warm.allow_on_demand_fallback", value: "true", with: "pools: {default: {warm: {usage_class: spot}}}", got: ofWarm(func(p fleet.WarmPool) any { return p.Spec.AllowOnDemand }), want: true},
	{key: "pools.<name>.warm.minimum_idle", value: "2", with: withWarm, got: ofWarm(func(p fleet.WarmPool) any { return p.Policy.MinimumIdle }), want: 2},
	{key: "pools.<name>.warm.lead", value: "2m", with: withWarm, got: ofWarm(func(p fleet.WarmPool) any { return p.Policy.Lead }), want: 2 * time.Minute},
	{key: "pools.<name>.warm.warm_time", value: "2h", with: withWarm, aws: true,
		got:  both(ofPolicy(func(p lifecycle.Policy) any { return p.WarmTime }), func(w *wired) any { return w.aws.queue.Retention }),
		want: [2]any{2 * time.Hour, 2*time.Hour + 2*time.Minute}},
	{key: "pools.<name>.warm.schedules[].cron", value: "\"* * 7 * * *\"", with: withSchedule, got: ofWarm(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].Cron }), want: "* * 7 * * *"},
	{key: "pools.<name>.warm.schedules[].time_zone", value: "Europe/Berlin", with: withSchedule, got: ofWarm(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].TimeZone }), want: "Europe/Berlin"},
	{key: "pools.<name>.warm.schedules[].idle_count", value: "3", with: withSchedule, got: ofWarm(func(p fleet.WarmPool) any { return p.Policy.Schedules[0].IdleCount }), want: 3},

	{key: "pools.<name>.jobs.labels", value: "[big]", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Labels }), want: []string{"big"}},
	{key: "pools.<name>.jobs.resource_class", value: "xlarge", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Spec.ResourceClass }), want: "xlarge"},
	{key: "pools.<name>.jobs.usage_class", value: "spot", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Spec.UsageClass }), want: lifecycle.UsageSpot},
	{key: "pools.<name>.jobs.instance_types", value: "[c6i.*]", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Spec.InstanceTypes }), want: []string{"c6i.*"}},
	{key: "pools.<name>.jobs.allow_on_demand_fallback", value: "true", with: withJobs + "pools: {default: {jobs: {usage_class: spot}}}", got: ofJobs(func(p fleet.JobPool) any { return p.Spec.AllowOnDemand }), want: true},
	{key: "pools.<name>.jobs.minimum", value: "2", with: withJobs + "pools: {default: {jobs: {minimum: 1, registered_minimum: true}}}", got: ofJobs(func(p fleet.JobPool) any { return p.Minimum }), want: 2},
	{key: "pools.<name>.jobs.minimum", value: "2", with: withJobs + "pools: {default: {jobs: {minimum: 1, resource_class: xlarge, usage_class: spot, instance_types: [c6i.*], allow_on_demand_fallback: true}}}",
		got:  ofWarm(func(p fleet.WarmPool) any { return []any{p.Policy.MinimumIdle, p.Spec} }),
		want: []any{2, lifecycle.Spec{ResourceClass: "xlarge", UsageClass: "spot", InstanceTypes: []string{"c6i.*"}, AllowOnDemand: true}}},
	{key: "pools.<name>.jobs.registered_minimum", value: "true", with: withJobs + "pools: {default: {jobs: {minimum: 2}}}", got: func(w *wired) any {
		return []any{w.fleet.Jobs.Pools["default"].Minimum, w.fleet.Pools["default"].Warm == nil}
	}, want: []any{2, true}},
	{key: "pools.<name>.jobs.maximum", value: "6", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Maximum }), want: 6},
	{key: "pools.<name>.jobs.repositories", value: "[acme/other]", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return []any{p.Repositories, p.Repository, p.Scope} }),
		want: []any{[]string{"acme/other"}, "acme/other", "acme/other"}},
	{key: "pools.<name>.jobs.forks", value: "true", with: withJobs, got: ofJobs(func(p fleet.JobPool) any { return p.Forks }), want: true},

	{key: "services.<name>.region", value: "eu-north-1", with: withService, got: both(ofService(func(s services.Service) any { return s.Region }), func(w *wired) any { return w.described() }),
		want: [2]any{"eu-north-1", `ecs eu-north-1 {"cluster":"c","services":["s"]}`}},
	{key: "services.<name>.region", value: "eu-north-1", with: withService + "services: {archive: {region: us-west-2, cluster: c, ecs_service: a}}", got: func(w *wired) any {
		return []string{w.described(), w.describedOf("archive")}
	}, want: []string{`ecs eu-north-1 {"cluster":"c","services":["s"]}`, `ecs us-west-2 {"cluster":"c","services":["a"]}`}},
	{key: "services.<name>.cluster", value: "d", with: withService, got: both(ofService(func(s services.Service) any { return s.Cluster }), func(w *wired) any { return w.described() }),
		want: [2]any{"d", `ecs eu-west-1 {"cluster":"d","services":["s"]}`}},
	{key: "services.<name>.ecs_service", value: "other", with: withService, got: both(ofService(func(s services.Service) any { return s.ECSService }), func(w *wired) any { return w.described() }),
		want: [2]any{"other", `ecs eu-west-1 {"cluster":"c","services":["other"]}`}},
	{key: "services.<name>.maximum", value: "20", with: withService, got: ofService(func(s services.Service) any { return s.Policy.Maximum }), want: 20},
	{key: "services.<name>.backlog_per_runner", value: "2000", with: withService, got: ofService(func(s services.Service) any {
		return []int{s.Policy.BacklogPerRunner, s.Backlog.(workqueue.Backlog).AtMost}
	}), want: []int{2000, 2001}},
	{key: "services.<name>.idle_checks", value: "20", with: withService, got: ofService(func(s services.Service) any { return s.Policy.IdleChecks }), want: 20},
	{key: "services.<name>.queue.postgrest.url", value: "PLAIN/other", with: withTable, got: func(w *wired) any { return w.counted() }, want: []string{"/other/jobs ", "/other/jobs "}},
	{key: "services.<name>.queue.postgrest.queued", value: "waiting", with: withTable, got: func(w *wired) any { return w.counted() }, want: []string{"/jobs ", "/waiting "}},
	{key: "services.<name>.queue.postgrest.busy", value: "working", with: withTable, got: func(w *wired) any { return w.counted() }, want: []string{"/jobs ", "/working "}},
	{key: "services.<name>.queue.postgrest.token_file", value: "DIR/token2", with: withTable, got: func(w *wired) any { return w.counted() },
		want: []string{"/jobs Bearer token-two", "/jobs Bearer token-two"}},
	{key: "services.<name>.queue.postgrest.busy", value: "\"jobs?status=eq.running\"", with: withTable, got: func(w *wired) any { return w.marked() }, want: `{"status":"failed"}`},
	{key: "services.<name>.queue.postgrest.stalled.column", value: "seen_at", with: withStalled, got: func(w *wired) any { return w.stalled() }, want: "/jobs?status=eq.running&seen_at=lt.2026-01-01T11:55:00.000Z&select=id&order=seen_at.asc&limit=50 "},
	{key: "services.<name>.queue.postgrest.stalled.after", value: "10m", with: withStalled, got: func(w *wired) any { return w.stalled() }, want: "/jobs?status=eq.running&heartbeat_at=lt.2026-01-01T11:50:00.000Z&select=id&order=heartbeat_at.asc&limit=50 "},
	{key: "services.<name>.queue.postgrest.stalled.after", value: "0s", with: withStalled, got: func(w *wired) any { return w.fleet.Services.Services["render"].Stalled }, want: nil},
	{key: "services.<name>.queue.postgrest.stalled.key", value: "uuid", with: withStalled, got: func(w *wired) any { return w.stalled() }, want: "/jobs?status=eq.running&heartbeat_at=lt.2026-01-01T11:55:00.000Z&select=uuid&order=heartbeat_at.asc&limit=50 "},
	{key: "services.<name>.queue.postgrest.stalled.state_column", value: "state", with: withStalled + "services: {render: {queue: {postgrest: {busy: \"jobs?state=eq.running\"}}}}", got: func(w *wired) any { return w.marked() }, want: `{"state":"failed"}`},
	{key: "services.<name>.queue.postgrest.stalled.failed", value: "dead", with: withStalled, got: func(w *wired) any { return w.marked() }, want: `{"status":"dead"}`},
	{key: "services.<name>.nudge_token_file", value: "DIR/nudge", with: withService, got: func(w *wired) any {
		if w.web.Scale == nil {
			return nil
		}
		services, err := w.web.Scale.Services(nudgeToken)
		return []any{services, err}
	}, want: []any{[]string{"render"}, nil}},
	{key: "services.<name>.worker_token_file", value: "DIR/worker", with: withService, got: func(w *wired) any {
		if w.web.Scale == nil {
			return nil
		}
		nudges, err := w.web.Scale.Services(workerToken)
		works, also := w.server.Callers.Workers.Services(workerToken)
		return []any{nudges, err, works, also}
	}, want: []any{[]string{"render"}, nil, []string{"render"}, nil}},
	{key: "services.<name>.requeue", value: "true", with: withService, got: func(w *wired) any { return w.fleet.Workers.Services["render"].Requeue }, want: true},
	{key: "services.<name>.queue_timeout", value: "3h", with: withService, got: func(w *wired) any { return w.fleet.Workers.Services["render"].QueueTime }, want: 3 * time.Hour},
	{key: "services.<name>.labels", value: "[gpu]", with: withService + withHooks, got: ofService(func(s services.Service) any { return s.Labels }), want: []string{"gpu"}},

	{key: "scale_down.minimum_running_time", value: "7m", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.MinimumRunning }), want: policy.ByOS{"linux": 7 * time.Minute}},
	{key: "scale_down.boot_time", value: "7m", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.BootTime }), want: policy.ByOS{"linux": 7 * time.Minute}},
	{key: "scale_down.idle_confirmation", value: "7m", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.IdleConfirmation }), want: 7 * time.Minute},
	{key: "scale_down.idle[].cron", value: "\"* * 7 * * *\"", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.Idle[0].Cron }), want: "* * 7 * * *"},
	{key: "scale_down.idle[].time_zone", value: "Europe/Berlin", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.Idle[0].TimeZone }), want: "Europe/Berlin"},
	{key: "scale_down.idle[].idle_count", value: "7", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.Idle[0].IdleCount }), want: 7},
	{key: "scale_down.idle[].eviction_strategy", value: "newest_first", with: withIdle, got: ofScaleDown(func(p policy.ScaleDown) any { return p.Idle[0].Eviction }), want: policy.EvictNewest},

	{key: "limits.hosts_per_repository", value: "7", got: func(w *wired) any { return w.fleet.Limits.HostsPerRepository }, want: 7},
	{key: "cost.prices[].instance_type", value: "c6i.*", with: withPrice, got: ofPrice("c6i.large", "spot"), want: 7.},
	{key: "cost.prices[].usage_class", value: "on-demand", with: withPrice, got: ofPrice("m5.large", "spot"), want: 0.0384},
	{key: "cost.prices[].region", value: "eu-west-1", with: withPrice, got: ofPrice("m5.large", "spot"), want: 0.0384},
	{key: "cost.prices[].dollars_per_hour", value: "3", with: withPrice, got: ofPrice("m5.large", "spot"), want: 3.},
	{key: "cost.spot_percent", value: "50", got: ofPrice("m5.large", "spot"), want: 0.048},
	{key: "tracing.endpoint", value: "\"http://127.0.0.1:7\"", got: ofTracing(func(o tracing.Options) any { return o.Endpoint }), want: "http://127.0.0.1:7"},
	{key: "tracing.ca_file", value: "DIR/ca.pem", with: withTracing, got: ofTracing(func(o tracing.Options) any { return len(o.Authorities) > 0 }), want: true},
	{key: "tracing.headers_file", value: "DIR/headers", with: withTracing, got: ofTracing(func(o tracing.Options) any { return o.Headers["x-key"].Reveal() }), want: "header-secret"},
	{key: "tracing.sample_percent", value: "7", with: withTracing, got: ofTracing(func(o tracing.Options) any { return o.Sample }), want: 0.07},
	{key: "cost.call_prices[].unit", value: "sqs-request", with: "cost: {call_prices: [{dollars_per_million: 7}]}", got: ofMillion("sqs-request"), want: 7.},
	{key: "cost.call_prices[].region", value: "eu-west-1", with: withCallPrice, got: ofMillion("sqs-request"), want: 0.4},
	{key: "cost.call_prices[].dollars_per_million", value: "3", with: withCallPrice, got: ofMillion("sqs-request"), want: 3.},
	{key: "page.token_file", value: "DIR/worker", got: func(w *wired) any { return w.d.pageOptions(w.c).Tokens != nil }, want: true},
	{key: "page.oidc.issuer", value: `"https://other.acme.com/"`, with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.Issuer }), want: "https://other.acme.com/"},
	{key: "page.oidc.client_id", value: "other", with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.ClientID }), want: "other"},
	{key: "page.oidc.client_secret_file", value: "DIR/token", with: withPeople, got: ofSignIn(func(o *signin.Options) any {
		secret, err := o.ClientSecret()
		return []any{secret.Reveal(), err}
	}), want: []any{"token-one", nil}},
	{key: "page.oidc.redirect_url", value: `"https://other.acme.com/ui/oidc/callback"`, with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.RedirectURL }), want: "https://other.acme.com/ui/oidc/callback"},
	{key: "page.oidc.session_key_file", value: "DIR/nudge", with: withPeople, got: ofSignIn(func(o *signin.Options) any {
		keys, err := o.Keys()
		return []any{keys[0].Reveal(), len(keys), err}
	}), want: []any{nudgeToken, 1, nil}},
	{key: "page.oidc.emails", value: "[Bob@acme.com]", with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.Allowed.Emails }), want: []string{"bob@acme.com"}},
	{key: "page.oidc.domains", value: "[ACME.org]", with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.Allowed.Domains }), want: []string{"acme.org"}},
	{key: "page.oidc.groups", value: "[Ops]", with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.Allowed.Groups }), want: []string{"Ops"}},
	{key: "page.oidc.groups_claim", value: "roles", with: withPeople, got: ofSignIn(func(o *signin.Options) any { return o.Allowed.GroupsClaim }), want: "roles"},
	{key: "limits.budgets[].repository", value: "Acme/Shop", with: withBudget, got: ofBudget(func(b budget.Budget) any { return b.Repository }), want: "acme/shop"},
	{key: "limits.budgets[].owner", value: "Acme", with: withOwnersBudget, got: ofBudget(func(b budget.Budget) any { return b.Owner }), want: "acme"},
	{key: "limits.budgets[].dollars_per_month", value: "7.5", with: withBudget, got: ofBudget(func(b budget.Budget) any { return b.Dollars }), want: 7.5},
	{key: "limits.budgets[].warn_percent", value: "7", with: withBudget, got: ofBudget(func(b budget.Budget) any { return b.WarnPercent }), want: 7},
	{key: "limits.hosts_per_owner", value: "7", got: func(w *wired) any { return w.fleet.Limits.HostsPerOwner }, want: 7},

	{key: "timeouts.creation", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.CreationTimeout }), want: 7 * time.Minute},
	{key: "timeouts.claim", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.ClaimTimeout }), want: 7 * time.Minute},
	{key: "timeouts.max_runtime", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.MaxRuntime }), want: 7 * time.Minute},
	{key: "timeouts.release", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.ReleaseTimeout }), want: 7 * time.Minute},
	{key: "timeouts.idle", value: "7m", aws: true, got: both(ofPolicy(func(p lifecycle.Policy) any { return p.IdleTime }), func(w *wired) any { return w.aws.queue.Retention }), want: [2]any{7 * time.Minute, 9 * time.Minute}},
	{key: "timeouts.silence", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.Silence }), want: 7 * time.Minute},
	{key: "timeouts.external", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.ExternalTimeout }), want: 7 * time.Minute},
	{key: "timeouts.unattended", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.UnattendedTimeout }), want: 7 * time.Minute},
	{key: "timeouts.claim_margin", value: "7s", got: ofPolicy(func(p lifecycle.Policy) any { return p.ClaimMargin }), want: 7 * time.Second},
	{key: "timeouts.forget", value: "7m", got: ofPolicy(func(p lifecycle.Policy) any { return p.ForgetAfter }), want: 7 * time.Minute},

	{key: "sweeps.due", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Due }), want: 7 * time.Second},
	{key: "sweeps.liveness", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Liveness }), want: 7 * time.Second},
	{key: "sweeps.cloud", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Cloud }), want: 7 * time.Second},
	{key: "sweeps.services", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Services }), want: 7 * time.Second},
	{key: "sweeps.scale_down", value: "17s", with: withIdle, got: func(w *wired) any { return w.fleet.ScaleDown.Every }, want: 17 * time.Second},
	{key: "sweeps.budgets", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Budgets }), want: 7 * time.Second},
	{key: "sweeps.warm", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Warm }), want: 7 * time.Second},
	{key: "sweeps.lease", value: "7s", got: ofTiming(func(t fleet.Timing) any { return t.Lease }), want: 7 * time.Second},
	{key: "sweeps.grace", value: "17s", got: ofTiming(func(t fleet.Timing) any { return t.Grace }), want: 17 * time.Second},

	{key: "log.level", value: "debug", got: func(w *wired) any {
		return []any{w.d.log.GetLevel().String(), w.process.AgentConfig != nil && w.agent().LogLevel == "debug"}
	}, want: []any{"debug", true}},
	{key: "log.format", value: "json", got: func(w *wired) any { return []any{strings.HasPrefix(w.log, "{"), w.agent().LogFormat} }, want: []any{true, "json"}},
}

// keyNames stand for what a user names.
var keyNames = strings.NewReplacer("resource_classes.<name>", "resource_classes.small", "pools.<name>", "pools.default", "services.<name>", "services.render",
	"<pattern>", "c6i*", "<variable>", "X", "<arch>", "arm64", "<key>", "team")

// text is the part of a file that sets the key.
func (r keyRow) text() string {
	text := r.value
	path := strings.Split(keyNames.Replace(r.key), ".")
	for i := len(path) - 1; i >= 0; i-- {
		key, item := strings.CutSuffix(path[i], "[]")
		if item {
			text = "[" + text + "]"
		}
		if key == "c6i*" {
			key = "c6i.*"
		}
		text = fmt.Sprintf("{%q: %s}", key, text)
	}
	return text
}

// TestEveryKeyHasItsEffect: whatever can be written in a file reaches the part that it is for. A key without a row fails, and so does a row
// whose effect is there without the key.
func TestEveryKeyHasItsEffect(t *testing.T) {
	b := newBench(t)
	rows := map[string]bool{}
	for _, row := range keyRows {
		rows[row.key] = true
		t.Run(row.key, func(t *testing.T) { b.check(t, row) })
	}
	for _, key := range inventory.Keys() {
		if !rows[key.Path] {
			t.Errorf("%s has no row: say what it changes", key.Path)
		}
		delete(rows, key.Path)
	}
	for key := range rows {
		t.Errorf("%s is no key", key)
	}
}

func (b *bench) check(t *testing.T, row keyRow) {
	smallest := smallestLocal
	if row.aws {
		smallest = smallestAWS
	}
	over := []string{smallest}
	for part := range strings.SplitAfterSeq(row.with, "\n") {
		over = append(over, part)
	}
	row.value = strings.ReplaceAll(row.value, "TAKEN", "\""+taken(t)+"\"")
	text := b.file("", append(over, row.text())...)
	if row.refused != "" {
		if said := b.refused(text); !strings.Contains(said, row.refused) {
			t.Errorf("serve says %q, want %q", said, row.refused)
		}
		return
	}
	w, err := b.make(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(row.want, row.got.or(w), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("%s: %s has no such effect (-want +got):\n%s", row.key, row.value, diff)
	}
	without, err := b.make(b.file("", over...))
	if err != nil {
		return // the key is required
	}
	if cmp.Equal(row.want, row.got.or(without), cmpopts.EquateErrors()) {
		t.Errorf("%s: the effect of %s is there without the key", row.key, row.value)
	}
}

// or is the effect, or nil where the part is not there without the key.
func (e effect) or(w *wired) (got any) {
	defer func() {
		if recover() != nil {
			got = nil
		}
	}()
	return e(w)
}
