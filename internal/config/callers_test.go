package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// mutual is what operators need.
const mutual = "grpc: {tls: {cert_file: /c, key_file: /k, client_ca_file: /a}}\n"

// ruled is a rule for the repository that is given first, with more of it.
func ruled(whom, more string) string {
	return "callers: {audience: a, repositories: [{" + whom + more + "}]}\n"
}

const own = "repository_id: 1, repository: acme/app"

func TestCallers(t *testing.T) {
	c := parse(t, mutual+`
webhooks: {secret_env: X}
pools: {long: {max_runtime: 9h}}
callers:
  audience: https://remuda.acme.com
  operators: [{subject: "CN=alice,O=Acme", role: admin}, {subject: CN=bob, role: viewer}]
  repositories:
    - repository_id: 1
      repository: acme/app
      owner_id: 7
      events: [push]
      refs: ["refs/heads/**"]
      workflows: ["acme/app/.github/workflows/*@**"]
      pools: [default, long]
      resource_classes: [large]
      usage_classes: [spot]
      max_hosts: 20
      max_runtime: 2h
      spot_for_pull_requests: true
      forks: true
      webhook: true
    - owner_id: 7
    - {owner_id: 8, pools: [default, long]}
`)
	if d := cmp.Diff(map[string]policy.Role{"CN=alice,O=Acme": policy.RoleAdmin, "CN=bob": policy.RoleViewer}, c.Callers.Roles()); d != "" {
		t.Error(d)
	}
	want := policy.Rules{
		{
			RepositoryID: 1, OwnerID: 7, Repository: "acme/app", Events: []string{"push"}, Refs: []string{"refs/heads/**"},
			Workflows: []string{"acme/app/.github/workflows/*@**"}, Pools: []string{"default", "long"}, ResourceClasses: []string{"large"},
			UsageClasses: []lifecycle.UsageClass{"spot"}, MaxHosts: 20, MaxRuntime: 2 * time.Hour,
			SpotForPullRequests: true, Forks: true, Webhook: true,
		},
		{OwnerID: 7, MaxHosts: 1, MaxRuntime: 2 * time.Hour},
		{OwnerID: 8, MaxHosts: 1, MaxRuntime: 9 * time.Hour, Pools: []string{"default", "long"}},
	}
	if d := cmp.Diff(want, c.Rules()); d != "" {
		t.Error(d)
	}
	if w := fmt.Sprint(c.Warnings()); !strings.Contains(w, "callers.repositories lets runs of forks of acme/app have hosts") {
		t.Errorf("warnings: %s", w)
	}
	if w := fmt.Sprint(parse(t, ruled("owner_id: 7", ", forks: true")).Warnings()); !strings.Contains(w, "forks of owner 7") {
		t.Errorf("warnings: %s", w)
	}
	both := parse(t, ruled("owner_id: 7", `, webhook: true, refs: ["refs/heads/main"]`)+"\nwebhooks: {secret_env: SECRET}\n")
	if w := fmt.Sprint(both.Warnings()); !strings.Contains(w, "no run is provisioned by webhook") {
		t.Errorf("webhook and refs: %s", w)
	}
	c = parse(t, "")
	if c.Callers.Issuer != "https://token.actions.githubusercontent.com" || len(c.Rules()) != 0 || len(c.Callers.Roles()) != 0 {
		t.Errorf("by default: %+v", c.Callers)
	}
}

func TestCallerRules(t *testing.T) {
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "{owner_id: %d},", i+1)
	}
	operators := func(list string) string { return mutual + "callers: {operators: [" + list + "]}\n" }
	tests := []struct{ name, text, want string }{
		{"no certificate has a role", mutual, `2:43: grpc.tls.client_ca_file: identifies callers by certificate, and no certificate has a role`},
		{"roles without certificates", "callers: {operators: [{subject: CN=a, role: admin}]}", `callers.operators: means nothing without certificates`},
		{"no subject", operators("{role: admin}"), `callers.operators[0].subject: is ""; write the subject`},
		{"a name for a subject", operators("{subject: alice, role: admin}"), `callers.operators[0].subject: is "alice"`},
		{"a subject twice", operators("{subject: CN=a, role: admin}, {subject: CN=a, role: viewer}"), `callers.operators[1].subject: is here twice`},
		{"no role", operators("{subject: CN=a}"), `callers.operators[0].role: is missing; write viewer, operator or admin`},
		{"role", operators("{subject: CN=a, role: adminn}"), `callers.operators[0].role: "adminn" is not allowed; did you mean admin?`},
		{"no audience", "callers: {repositories: [{owner_id: 7}]}", `callers.audience: is missing, and repositories need it`},
		{"audience for nothing", "callers: {audience: a}", `callers.audience: means nothing without repositories`},
		{"audience", strings.Replace(ruled(own, ""), "audience: a", `audience: "a b"`, 1), `callers.audience: is "a b"`},
		{"anybody's audience", strings.Replace(ruled(own, ""), "audience: a", "audience: https://github.com/acme", 1), `callers.audience: is GitHub's default audience, which any token may have`},
		{"issuer", "callers: {issuer: token.actions.githubusercontent.com}", `callers.issuer: is not the URL of an issuer`},
		{"issuer with a query", "callers: {issuer: \"https://x/?a\"}", `callers.issuer: is not the URL of an issuer`},
		{"issuer in plaintext", "callers: {issuer: \"http://ghes.acme.com/_services/token\"}", `callers.issuer: would be asked for its keys in plaintext`},
		{"a rule without a subject", ruled("max_hosts: 1", ""), `callers.repositories[0]: has neither repository_id nor owner_id`},
		{"no id", ruled("repository_id: 0, repository: acme/app", ""), `callers.repositories[0].repository_id: is 0; write a number from 1 to 9999999999`},
		{"a name alone", ruled("owner_id: 7, repository: acme/app", ""), `callers.repositories[0].repository: is there without repository_id, and names change hands`},
		{"an id alone", ruled("repository_id: 1", ""), `callers.repositories[0].repository: is ""; write the name that repository_id has`},
		{"name", ruled("repository_id: 1, repository: acme", ""), `callers.repositories[0].repository: is "acme"`},
		{"owner", ruled(own, ", owner_id: -1"), `callers.repositories[0].owner_id: is -1`},
		{"an id twice", ruled(own+"}, {repository_id: 1, repository: acme/new", ""), `callers.repositories[1]: repeats the repository or owner of a rule above`},
		{"an owner twice", ruled("owner_id: 7}, {owner_id: 7", ""), `callers.repositories[1]: repeats the repository or owner of a rule above`},
		{"a name twice", ruled(own+"}, {repository_id: 2, repository: Acme/App", ""), `callers.repositories[1].repository: is here twice`},
		{"too many", "callers: {audience: a, repositories: [" + many.String() + "]}", `callers.repositories: has 101 entries; write at most 100`},
		{"no events", ruled(own, ", events: []"), `callers.repositories[0].events: is empty; write what is allowed, or leave it out`},
		{"an empty event", ruled(own, `, events: [push, ""]`), `callers.repositories[0].events[1]: is empty; write a pattern`},
		{"an event twice", ruled(own, ", events: [push, push]"), `callers.repositories[0].events[1]: is here twice`},
		{"refs", ruled(own, `, refs: ["refs/heads/ma?n"]`), `callers.repositories[0].refs[0]: has a character`},
		{"workflows", ruled(own, `, workflows: ["***"]`), `callers.repositories[0].workflows[0]: has three stars`},
		{"no pools", ruled(own, ", pools: []"), `callers.repositories[0].pools: is empty`},
		{"pool", ruled(own, ", pools: [default, gpu]"), `callers.repositories[0].pools[1]: is no pool; there is none of the name "gpu"`},
		{"no classes", ruled(own, ", resource_classes: []"), `callers.repositories[0].resource_classes: is empty`},
		{"class", ruled(own, ", resource_classes: [huge]"), `callers.repositories[0].resource_classes[0]: is no resource class`},
		{"no usage classes", ruled(own, ", usage_classes: []"), `callers.repositories[0].usage_classes: is empty`},
		{"usage class", ruled(own, ", usage_classes: [sport]"), `callers.repositories[0].usage_classes[0]: "sport" is not allowed; did you mean spot?`},
		{"no hosts", ruled(own, ", max_hosts: 0"), `callers.repositories[0].max_hosts: is 0; write a number from 1 to 200`},
		{"hosts", ruled(own, ", max_hosts: 201"), `callers.repositories[0].max_hosts: is 201`},
		{"runtime", ruled(own, ", max_runtime: 0s"), `callers.repositories[0].max_runtime: is 0s; write a duration from 1s to 120h0m0s`},
		{"webhook", ruled(own, ", webhook: true"), `callers.repositories[0].webhook: means nothing without webhooks`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(token+test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("more than one problem:\n%v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"a stand-in":         "callers: {issuer: \"http://127.0.0.1:7081\"}",
		"plaintext and OIDC": ruled(own, ""),
		"TLS and OIDC alone": "grpc: {addr: \":7443\", tls: {cert_file: /c, key_file: /k}}\n" + ruled("owner_id: 7", ""),
		"both":               ruled(own+"}, {owner_id: 7", ""),
	} {
		t.Run(name, func(t *testing.T) { parse(t, text) })
	}
}
