package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// service is a configuration with a service x, and more about it.
func service(more string) string {
	return token + "services: {x: {region: eu-west-1, cluster: c, ecs_service: s" + more + "}}\n"
}

// stalled is a table of jobs in which silent workers are looked for.
func stalled(more string) string {
	return `, queue: {postgrest: {url: "http://db/", queued: a, busy: "a?status=eq.running", stalled: {` + more + `}}}`
}

// TestStalledJobs: a table without a section is taken for one with the usual columns, if busy jobs are those of a status. Otherwise nothing is
// written, which is said, as the service may run for nothing.
func TestStalledJobs(t *testing.T) {
	usual := config.Stalled{Column: "heartbeat_at", After: 5 * time.Minute, Key: "id", StateColumn: "status", Failed: "failed"}
	table := func(busy, more string) string {
		return service(`, queue: {postgrest: {url: "http://db/", queued: a, busy: "` + busy + `"` + more + `}}`)
	}
	slow, own, looser := usual, usual, usual
	slow.After, own.StateColumn, own.Failed, looser.After = 20*time.Minute, "state", "dead", 10*time.Minute
	for name, test := range map[string]struct {
		text string
		want *config.Stalled
		warn bool
	}{
		"a queue here":                    {text: service("")},
		"a status":                        {text: table("jobs?status=eq.running", ""), want: &usual},
		"several states":                  {text: table("jobs?kind=eq.film&status=in.(running,paused)", ""), want: &usual},
		"slow sweeps":                     {text: table("jobs?status=eq.running", "") + "sweeps: {services: 10m}\n", want: &slow},
		"no filter":                       {text: table("jobs", ""), warn: true},
		"another column":                  {text: table("jobs?job_status=eq.running", ""), warn: true},
		"a failed job is busy":            {text: table("jobs?status=eq.failed", ""), warn: true},
		"a failed job may be busy":        {text: table("jobs?status=in.(running,failed)", ""), warn: true},
		"a failed job may be busy, coded": {text: table("jobs?status=in.(running,%22failed%22)", ""), warn: true},
		"all states except one":           {text: table("jobs?status=neq.done", ""), warn: true},
		"a section":                       {text: table("jobs?state=eq.running", ", stalled: {state_column: state, failed: dead}"), want: &own},
		"a section with a time":           {text: table("jobs?status=eq.running", ", stalled: {after: 10m}"), want: &looser},
		"turned off":                      {text: table("jobs?status=eq.running", ", stalled: {after: 0s}") + "sweeps: {services: 10m}\n"},
		"turned off without a filter":     {text: table("jobs", ", stalled: {after: 0s}")},
	} {
		c, err := config.Parse("f", []byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, c.StalledJobs("x")); diff != "" {
			t.Errorf("%s: stalled jobs (-want +got):\n%s", name, diff)
		}
		if warned := strings.Contains(strings.Join(c.Warnings(), "\n"), "services.x.queue.postgrest.busy has no filter such as status=eq.running"); warned != test.warn {
			t.Errorf("%s: warnings %q", name, c.Warnings())
		}
	}
}

// A file with services and nothing about hosts needs no credentials, images or runner. With any key about hosts it
// needs them all.
func TestAFleetWithoutHosts(t *testing.T) {
	const services = "services: {x: {region: eu-west-1, cluster: c, ecs_service: s}}\n"
	for _, text := range []string{services, services + "aws: {region: eu-west-1, prefix: lone, tags: {team: ci}}\n", services + "sweeps: {services: 2m}\n"} {
		if c, err := config.Parse("f", []byte(text)); err != nil || !c.WithoutHosts || len(c.Warnings()) > 0 {
			t.Errorf("%s: error %v, warnings %q", text, err, c.Warnings())
		}
	}
	for text, says := range map[string]string{
		"log: {level: info}\n":                                  "github: has no token",
		services + "pools: {default: {reuse: none}}\n":          "github: has no token",
		services + "limits: {hosts_per_owner: 3}\n":             "github: has no token",
		services + "aws: {ec2: {subnets: [subnet-12345678]}}\n": "aws.instance_profile: is",
		services + "github: {}\n":                               "github: has no token",
		services + "aws: {tags: {a: b@c}}\n":                    "aws.tags.a: has an @",
		services + "aws: {prefix: _}\n":                         "aws.prefix: is",
		services + "aws: {}\nstore: {sqlite: {path: /x}}\n":     "store: is there beside aws",
		services + "store: {sqlite: {path: x}}\n":               "store.sqlite.path: is",
	} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", text, err, says)
		}
	}
	if c, err := config.Parse("f", []byte(token+services)); err != nil || c.WithoutHosts {
		t.Errorf("with a token: error %v, or it is without hosts", err)
	}
}

func TestServicesRules(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"name", token + "services: {X_1: {}}", `services.X_1: is no name of a service; write 1 to 63 of a-z 0-9 and -`},
		{"long name", token + "services: {" + strings.Repeat("a", 64) + ": {}}", `is no name of a service`},
		{"no region", token + "services: {x: {cluster: c, ecs_service: s}}", `services.x.region: is missing, and there is no aws section`},
		{"region", token + "services: {x: {region: Mars, cluster: c, ecs_service: s}}", `services.x.region: is "Mars"; write a region`},
		{"no service", token + "services: {x: {region: eu-west-1, cluster: c}}", `services.x.ecs_service: is missing; write its name in ECS`},
		{"no cluster", token + "services: {x: {ecs_service: s}}", `services.x.cluster: is missing; write its name in ECS`},
		{"ARN", token + "services: {x: {region: eu-west-1, cluster: \"arn:aws:ecs:x\", ecs_service: s}}", `services.x.cluster: is "arn:aws:ecs:x"; write its name in ECS`},
		{"one twice", token + "services: {x: &s {region: eu-west-1, cluster: c, ecs_service: s}, y: *s}", `services.y.ecs_service: is that of service x too`},
		{"no runners", service(", maximum: 0"), `services.x.maximum: is 0; write a number from 1 to 1000`},
		{"no backlog", service(", backlog_per_runner: 0"), `services.x.backlog_per_runner: is 0; write a number from 1 to`},
		{"no time to wait", service(", queue_timeout: 0s"), `services.x.queue_timeout: is 0s; write a duration from 1m0s to 168h0m0s`},
		{"time to wait in a table", service(", queue: {postgrest: {url: \"http://db/\", queued: a, busy: b}}, queue_timeout: 24h"), `services.x.queue_timeout: means nothing with queue.postgrest`},
		{"negative checks", service(", idle_checks: -1"), `services.x.idle_checks: is -1; write a number from 1 to 1000`},
		{"labels without webhooks", service(", labels: [a]"), `services.x.labels: means nothing without webhooks`},
		{"token of a service that is not scaled", token + "services: {x: {nudge_token_file: /t}}", `services.x.nudge_token_file: means nothing without cluster and ecs_service`},
		{"relative worker token", service(", worker_token_file: t"), `services.x.worker_token_file: is "t"; write an absolute path`},
		{"workers of a table", service(", queue: {postgrest: {url: \"http://db/\", queued: a, busy: b}}, worker_token_file: /t"), `services.x.worker_token_file: means nothing with queue.postgrest`},
		{"requeue of a table", service(", queue: {postgrest: {url: \"http://db/\", queued: a, busy: b}}, requeue: true"), `services.x.requeue: means nothing with queue.postgrest`},
		{"relative token", service(", nudge_token_file: t"), `services.x.nudge_token_file: is "t"; write an absolute path`},
		{"no url", service(", queue: {postgrest: {queued: a, busy: b}}"), `services.x.queue.postgrest.url: is not the base URL of an API`},
		{"token in plaintext", service(", queue: {postgrest: {url: \"http://db/\", queued: a, busy: b, token_file: /t}}"), `services.x.queue.postgrest.url: would send the token in plaintext`},
		{"no table", service(", queue: {postgrest: {url: \"http://db/\", queued: a}}"), `services.x.queue.postgrest.busy: is ""; write a table and its filter`},
		{"other path", service(", queue: {postgrest: {url: \"http://db/\", queued: a, busy: ../b}}"), `services.x.queue.postgrest.busy: is "../b"; write a table`},
		{"stalled column", service(stalled("column: \"a,b\"")), `services.x.queue.postgrest.stalled.column: is "a,b"; write a column`},
		{"stalled key", service(stalled("key: \"\"")), `services.x.queue.postgrest.stalled.key: is ""; write a column`},
		{"stalled state", service(stalled("failed: \"\"")), `services.x.queue.postgrest.stalled.failed: is ""; write a value`},
		{"stalled too soon", service(stalled("after: 59s")), `services.x.queue.postgrest.stalled.after: is 59s; write a duration from 1m0s`},
		{"stalled sooner than looked for", service(stalled("after: 9m")) + "sweeps: {services: 5m}\n", `services.x.queue.postgrest.stalled.after: is 9m0s, less than twice sweeps.services (5m0s)`},
		{"stalled jobs that stay busy since busy has another column", service(`, queue: {postgrest: {url: "http://db/", queued: a, busy: "a?job_status=eq.running", stalled: {}}}`), `services.x.queue.postgrest.stalled.state_column: is status, and busy has no filter of that column`},
		{"a column while it is off", service(stalled("after: 0s, column: \"a,b\"")), `services.x.queue.postgrest.stalled.column: is "a,b"; write a column`},
		{"stalled jobs that stay busy", service(stalled("state_column: state")), `services.x.queue.postgrest.stalled.state_column: is state, and busy has no filter of that column`},
		{"interval", token + "sweeps: {services: 0s}", `sweeps.services: is 0s; write a duration from 1s to 1h0m0s`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one problem:\n%v", err)
			}
		})
	}
}

func TestAServiceHasDefaults(t *testing.T) {
	c, err := config.Parse("f", []byte(aws("region: eu-west-1")+"services: {scaled: {cluster: c, ecs_service: s}, queue: {}}\n"+token))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Service{
		"scaled": {Cluster: "c", ECSService: "s", Maximum: 1, BacklogPerRunner: 10, IdleChecks: 5, QueueTimeout: 24 * time.Hour},
		"queue":  {Maximum: 1, BacklogPerRunner: 10, IdleChecks: 5, QueueTimeout: 24 * time.Hour},
	}
	if diff := cmp.Diff(want, c.Services); diff != "" {
		t.Error(diff)
	}
	if got := c.ServiceRegion("scaled"); got != "eu-west-1" {
		t.Errorf("region: got %q", got)
	}
	if !c.Services["scaled"].Scaled() || c.Services["queue"].Scaled() {
		t.Error("only a service with a cluster is scaled")
	}
}
