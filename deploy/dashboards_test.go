package deploy_test

// chart is a panel: a line, a stack or a number for each answer of its queries.
type chart struct {
	title, says string
	unit        string
	kind        string // lines, stack or number
	queries     []query
}

// query is an expression, and how its answers are named.
type query struct{ expr, legend string }

// section is a row of a dashboard.
type section struct {
	title  string
	charts []chart
}

// board is a dashboard.
type board struct {
	file, uid, title, says string
	from                   string // the time that it shows at first
	sections               []section
}

func lines(title, unit, says string, queries ...query) chart {
	return chart{title, says, unit, "lines", queries}
}

func stack(title, unit, says string, queries ...query) chart {
	return chart{title, says, unit, "stack", queries}
}

func number(title, unit, says string, queries ...query) chart {
	return chart{title, says, unit, "number", queries}
}

// one is the query of a number.
func one(expr string) query { return query{expr: expr} }

// quantile is the 95th percentile of a histogram by a label.
func quantile(histogram, by string) string {
	return "histogram_quantile(0.95, sum by (" + by + ") (rate(" + histogram + "[$__rate_interval])))"
}

const (
	fails     = `result=~"unavailable|timeout|error"`
	perMinute = "[$__rate_interval]"
)

// boards are the dashboards of deploy/grafana. go test ./deploy -run TestTheDashboardsAreWritten -update writes them.
var boards = []board{
	{
		"fleet.json", "remuda-fleet", "Remuda: fleet", "What waits and why, the hosts, and services on ECS.", "now-6h",
		[]section{
			{"Now", []chart{
				number("Jobs that wait", "short", "Queued jobs of all job pools that no runner has taken.", one("sum(max by (pool) (remuda_jobs_waiting))")),
				number("Requests that wait", "short", "Requests of runs that wait for hosts.", one("sum(max by (pool, code) (remuda_requests_waiting)) or vector(0)")),
				number("Living hosts", "short", "Hosts of all pools.", one("sum(max by (state, pool) (remuda_hosts)) or vector(0)")),
				number("Busy hosts", "short", "Hosts with a job.", one("max(remuda_hosts_busy)")),
				number("Dollars an hour", "currencyUSD", "What an hour of the living hosts costs.", one("sum(max by (pool, usage_class) (remuda_hosts_dollars_per_hour)) or vector(0)")),
				number("Held or paused", "short", "Whether an operator holds the fleet, and how many pools are paused.",
					query{"max(remuda_fleet_held)", "fleet"}, query{"sum(max by (pool) (remuda_pool_paused))", "pools"}),
			}},
			{"Waiting", []chart{
				stack("Jobs that wait, by pool", "short", "Queued jobs of job pools that no runner has taken. The reason of the longest is beside it.",
					query{"max by (pool) (remuda_jobs_waiting)", "{{pool}}"}),
				lines("Why the longest waits", "short", "1 for the reason why the job of a pool that waits longest has no host. `remuda why` of the job says what happens next.",
					query{"max by (pool, code) (remuda_jobs_waiting_reason)", "{{pool}}: {{code}}"}),
				stack("Requests that wait, by reason", "short", "Requests of runs that wait for hosts, by what holds them. `remuda waiting` lists them.",
					query{"max by (pool, code) (remuda_requests_waiting)", "{{pool}}: {{code}}"}),
				lines("Queue to start, 95 %", "s", "From the queueing of a job of a job pool to its start, as GitHub reports both.",
					query{quantile("remuda_job_queue_duration_seconds_bucket", "le, pool"), "{{pool}}"}),
				lines("Request to hosts, 95 %", "s", "From a request to the readiness of all its hosts: cold (launched), warm (from the pool), hot (from the pool, with a runner that listened).",
					query{quantile("remuda_provision_duration_seconds_bucket", "le, start"), "{{start}}"}),
				stack("Jobs that get no host", "short", "Jobs in an hour that no pool takes, by the reason.",
					query{"sum by (code) (increase(remuda_jobs_unserved_total[1h]))", "{{code}}"}),
			}},
			{"Hosts", []chart{
				stack("Hosts by state", "short", "Living hosts of all pools.", query{"sum by (state) (max by (state, pool) (remuda_hosts))", "{{state}}"}),
				stack("Hosts by pool", "short", "Living hosts in any state.", query{"sum by (pool) (max by (state, pool) (remuda_hosts))", "{{pool}}"}),
				lines("Busy", "short", "Hosts with a job, beside all that live.",
					query{"max(remuda_hosts_busy)", "busy"}, query{"sum(max by (state, pool) (remuda_hosts))", "living"}),
				lines("Hosts from the pool", "percentunit", "The share of the hosts that requests got which had waited in the pool.",
					query{`sum by (pool) (rate(remuda_hosts_taken_total{from="pool"}` + perMinute + `)) / sum by (pool) (rate(remuda_hosts_taken_total` + perMinute + `))`, "{{pool}}"}),
				lines("Steps of a host, 95 %", "s", "Claim: from a Provision to its hosts, if all waited in the pool. Register: from the claim or launch of a host to its readiness. Release: until it is in the pool again, clean.",
					query{quantile("remuda_claim_duration_seconds_bucket", "le"), "claim"},
					query{quantile("remuda_register_duration_seconds_bucket", "le"), "register"},
					query{quantile("remuda_release_duration_seconds_bucket", "le"), "release"}),
				stack("Slots of job pools", "short", "Hosts at work for a job pool, or about to be.", query{"max by (pool) (remuda_turns_open)", "{{pool}}"}),
				stack("Machines that went", "short", "Machines in an hour that ended without an order of the fleet, by the code of EC2. Spot interruptions have codes of their own.",
					query{"sum by (code) (increase(remuda_machines_gone_total[1h]))", "{{code}}"}),
				lines("Kept from their end", "short", "Hosts and machines that a guard keeps because too many failed at once, whether an operator holds the fleet, and which pools are paused.",
					query{"max by (guard) (remuda_guard_held)", "{{guard}}"}, query{"max(remuda_fleet_held)", "fleet held"}, query{"max by (pool) (remuda_pool_paused)", "{{pool}} paused"}),
				lines("Runner versions", "s", "How long GitHub still gives jobs to the versions of the runner that hosts have. Less than ten days is an alert.",
					query{"min by (version) (remuda_runner_version_ends_timestamp_seconds) - time()", "{{version}}"}),
			}},
			{"Services on ECS", []chart{
				lines("Jobs and runners of services", "short", "Jobs that wait, and the runners that ECS should have and has.",
					query{"max by (service) (remuda_service_jobs_waiting)", "{{service}}: waiting"},
					query{"max by (service) (remuda_service_runners_desired)", "{{service}}: desired"},
					query{"max by (service) (remuda_service_runners_running)", "{{service}}: running"}),
				lines("Workers of services", "short", "Workers that reported in the last 60 seconds, and those that reported in the last 24 hours and not since.",
					query{"max by (service) (remuda_service_workers_online)", "{{service}}: online"},
					query{"max by (service) (remuda_service_workers_offline)", "{{service}}: offline"}),
			}},
		},
	},
	{
		"costs.json", "remuda-costs", "Remuda: costs", "What the hosts cost and what that time was used for, by pool; and the budgets. remuda cost has it by repository.", "now-7d",
		[]section{
			{"Now", []chart{
				number("Dollars an hour", "currencyUSD", "What an hour of the living hosts costs.", one("sum(max by (pool, usage_class) (remuda_hosts_dollars_per_hour)) or vector(0)")),
				number("Dollars in a day", "currencyUSD", "What the hosts cost whose time was counted in the last 24 hours.", one("sum(increase(remuda_host_cost_dollars_total[1d]))")),
				number("Idle and cleaning", "percentunit", "The share of the dollars of the last 24 hours that no run used.",
					one(`sum(increase(remuda_host_cost_dollars_total{part=~"idle|clean"}[1d])) / sum(increase(remuda_host_cost_dollars_total[1d]))`)),
				number("Fullest budget", "percentunit", "Share used of the budget that is closest to being used up.", one("max(remuda_budget_used_ratio)")),
			}},
			{"Dollars", []chart{
				stack("Dollars an hour, by pool", "currencyUSD", "What an hour of the living hosts costs, whatever they do.",
					query{"sum by (pool) (max by (pool, usage_class) (remuda_hosts_dollars_per_hour))", "{{pool}}"}),
				stack("Dollars an hour, by usage class", "currencyUSD", "The same, by how the machines are bought.",
					query{"sum by (usage_class) (max by (pool, usage_class) (remuda_hosts_dollars_per_hour))", "{{usage_class}}"}),
				stack("Dollars in a day, by pool", "currencyUSD", "What the hosts cost whose time was counted in 24 hours: once a run gives its host back, and once a machine is gone.",
					query{"sum by (pool) (increase(remuda_host_cost_dollars_total[1d]))", "{{pool}}"}),
				stack("Dollars in a day, by part", "currencyUSD", "Boot and busy time is that of runs, idle and clean that of the pool.",
					query{"sum by (part) (increase(remuda_host_cost_dollars_total[1d]))", "{{part}}"}),
			}},
			{"Time", []chart{
				stack("Host time by part", "short", "The mean number of hosts in each part of their time in the last six hours. Nothing counts before a run gives its host back.",
					query{"sum by (part) (rate(remuda_host_time_seconds_total[6h]))", "{{part}}"}),
				lines("Busy share, by pool", "percentunit", "The share of the paid time that runs had hosts, in a day.",
					query{`sum by (pool) (rate(remuda_host_time_seconds_total{part="busy"}[1d])) / sum by (pool) (rate(remuda_host_time_seconds_total[1d]))`, "{{pool}}"}),
			}},
			{"Budgets", []chart{
				lines("Budgets", "percentunit", "The part of each budget that is used in this month. From 1 on its runs get no more hosts.",
					query{"max by (budget) (remuda_budget_used_ratio)", "{{budget}}"}),
			}},
		},
	},
	{
		"controld.json", "remuda-controld", "Remuda: controld", "controld itself: who calls it, what it calls, its sweeps, and what it decides.", "now-6h",
		[]section{
			{"Now", []chart{
				number("Replicas", "short", "How many controlds are scraped.", one("count(remuda_build_info)")),
				number("Oldest sweep", "s", "How long ago the sweep last went well that has waited longest, without those that come each hour or day.",
					one(`max(min by (sweep) (remuda_sweep_age_seconds{sweep!~"runners|days"}))`)),
				number("Calls that fail", "percentunit", "The share of the calls to the store, AWS and GitHub.",
					one("(sum(rate(remuda_calls_total{"+fails+"}"+perMinute+")) or vector(0)) / sum(rate(remuda_calls_total"+perMinute+"))")),
				number("Left at GitHub", "short", "Requests that GitHub still takes of the credential that has the fewest left.", one("min(remuda_github_requests_remaining)")),
			}},
			{"Calls of clients", []chart{
				stack("gRPC requests", "reqps", "Requests in a second, by method.", query{"sum by (method) (rate(remuda_grpc_request_duration_seconds_count" + perMinute + "))", "{{method}}"}),
				lines("gRPC requests, 95 %", "s", "How long they take, without Provision, which waits for hosts.",
					query{`histogram_quantile(0.95, sum by (le, method) (rate(remuda_grpc_request_duration_seconds_bucket{method!~".*/Provision"}` + perMinute + `)))`, "{{method}}"}),
				stack("gRPC requests that fail", "reqps", "Requests in a second with another code than OK. Unauthenticated and PermissionDenied are a caller that is configured wrongly, or a stranger.",
					query{`sum by (method, code) (rate(remuda_grpc_request_duration_seconds_count{code!="OK"}` + perMinute + `))`, "{{method}}: {{code}}"}),
				stack("Webhooks", "reqps", "Deliveries in a second, by what came of them.", query{"sum by (outcome) (rate(remuda_webhooks_total" + perMinute + "))", "{{outcome}}"}),
			}},
			{"Calls to others", []chart{
				stack("Calls to AWS", "reqps", "Calls in a second to EC2, SQS and ECS, by operation.",
					query{`sum by (operation) (rate(remuda_calls_total{operation=~"compute.*|queue.*|notices.*|services.*"}` + perMinute + `))`, "{{operation}}"}),
				stack("Calls to GitHub", "reqps", "Calls in a second, by operation.",
					query{`sum by (operation) (rate(remuda_calls_total{operation=~"github.*"}` + perMinute + `))`, "{{operation}}"}),
				stack("Calls to the store", "reqps", "The ten operations with most calls in a second.",
					query{`topk(10, sum by (operation) (rate(remuda_calls_total{operation=~"store.*"}` + perMinute + `)))`, "{{operation}}"}),
				lines("Calls that fail, by operation", "reqps", "Calls in a second that fail: unavailable and timeout are an outage or throttling, error is a refusal.",
					query{"sum by (operation, result) (rate(remuda_calls_total{" + fails + "}" + perMinute + "))", "{{operation}}: {{result}}"}),
				lines("Requests left at GitHub", "short", "What its API still takes from each credential until its limit is reset.",
					query{"min by (credential) (remuda_github_requests_remaining)", "{{credential}}"}),
				lines("Clock", "s", "How far the clock of each replica is off that of AWS. Beyond 60 seconds it does nothing.", query{"abs(remuda_clock_offset_seconds)", "{{instance}}"}),
			}},
			{"Sweeps and decisions", []chart{
				lines("Age of the sweeps", "s", "Since a sweep last went well on any replica. More than 15 minutes is an alert.", query{"min by (sweep) (remuda_sweep_age_seconds)", "{{sweep}}"}),
				lines("Sweeps, 95 %", "s", "How long they take. One that takes longer than its interval delays others.",
					query{quantile("remuda_sweep_duration_seconds_bucket", "le, sweep"), "{{sweep}}"}),
				stack("Sweeps that fail", "short", "Sweeps in an hour that failed, by the class of their error. The log has the error.",
					query{"sum by (sweep, result) (increase(remuda_sweep_duration_seconds_count{" + fails + "}[1h]))", "{{sweep}}: {{result}}"}),
				stack("Decisions", "short", "The ten most frequent actions in an hour, with their reasons.",
					query{"topk(10, sum by (action, code) (increase(remuda_decisions_total[1h])))", "{{action}}: {{code}}"}),
				stack("Versions", "short", "Replicas by version. Two for longer than an upgrade say that one was forgotten.", query{"count by (version) (remuda_build_info)", "{{version}}"}),
			}},
		},
	},
}
