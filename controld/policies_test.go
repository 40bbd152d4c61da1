package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/iamsim"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const policyCases = "testdata/iam-cases.txt"

// renderedPolicies are the policies whose cases there are, as controld iam prints them, and who asks.
func renderedPolicies(t *testing.T) (map[string]iamsim.Document, map[string]iamsim.Caller) {
	t.Helper()
	text, err := os.ReadFile(awsExample)
	if err != nil {
		t.Fatal(err)
	}
	china := write(t, "china.yaml", strings.ReplaceAll(string(text), "eu-west-1", "cn-north-1"))
	const noKey = "#kms_key_id: alias/ci"
	key := write(t, "key.yaml", strings.Replace(string(text), noKey, "kms_key_id: 11111111-2222-3333-4444-555555555555", 1))
	alias := write(t, "alias.yaml", strings.Replace(string(text), noKey, "kms_key_id: alias/ci", 1))
	power := write(t, "power.yaml", strings.Replace(string(text), "\npools:\n", "\npools:\n  power: {stopped: {maximum: 2}, reset: root-volume}\n", 1))
	policies, callers := map[string]iamsim.Document{}, map[string]iamsim.Caller{}
	for name, args := range map[string][]string{
		"controld": {awsExample}, "refresh": {awsExample}, "host": {awsExample},
		"controld/path": {awsExample, "--host-role", "ci/hosts", "--host-profile", "ci/remuda-host"},
		"controld/key":  {key}, "controld/alias": {alias}, "controld/power": {power},
		"host/logs":      {awsExample, "--host-logs"},
		"controld/china": {china}, "refresh/china": {china}, "host/china": {china},
	} {
		role, variant, _ := strings.Cut(name, "/")
		got := controld(t, append([]string{"iam", "--account", "123456789012", "--role", role, "--config"}, args...)...)
		var d iamsim.Document
		if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != 0 {
			t.Fatal(name, got, err)
		}
		c := iamsim.Caller{Partition: "aws", Region: "eu-west-1", Account: "123456789012"}
		if variant == "china" {
			c.Partition, c.Region = "aws-cn", "cn-north-1"
		}
		c.Principal = "arn:" + c.Partition + ":sts::" + c.Account + ":assumed-role/controld/i-0ccccccccccccccc3"
		if role == "host" {
			c.Principal = "arn:" + c.Partition + ":sts::" + c.Account + ":assumed-role/remuda-host/i-0aaaaaaaaaaaaaaa1"
		}
		policies[name], callers[name] = d, c
	}
	return policies, callers
}

// TestThePoliciesEvaluated holds the policies against the cases, and the cases against each clause of the policies of docs/iam: one that can be
// changed without a case that notices is one that nothing shows the need of.
func TestThePoliciesEvaluated(t *testing.T) {
	racepass.OneGoroutine(t)
	policies, callers := renderedPolicies(t)
	table, err := iamsim.ReadTable(policyCases, callers)
	if err != nil {
		t.Fatal(err)
	}
	var mutants []iamsim.Mutant
	for _, role := range []string{"controld", "refresh", "host"} {
		mutants = append(mutants, iamsim.Mutants(role, policies[role])...)
	}
	// The other statements of these are those of controld and of host.
	for policy, statements := range map[string]string{"controld/key": "Volume", "controld/power": "MadeByReplacements", "host/logs": "HostLogs"} {
		for _, m := range iamsim.Mutants(policy, policies[policy]) {
			if strings.HasPrefix(m.Clause, policy+" "+statements) {
				mutants = append(mutants, m)
			}
		}
	}
	result := iamsim.Simulate(t, policies, table.Cases, mutants)
	for i, c := range table.Cases {
		if result.Got[i] != c.Want {
			t.Errorf("%v is %s, want %s", c, result.Got[i], c.Want)
		}
	}
	same := maps.Clone(table.Same)
	for i, m := range mutants {
		_, meansTheSame := table.Same[m.Clause]
		delete(same, m.Clause)
		switch caught := result.Caught[i] >= 0; {
		case !caught && !meansTheSame:
			t.Errorf("no case notices this change: %s", m.Clause)
		case caught && meansTheSame:
			t.Errorf("%s is not the same: %v notices", m.Clause, table.Cases[result.Caught[i]])
		}
	}
	for clause := range same {
		t.Errorf("there is no such clause: %s", clause)
	}
	wantCounted(t, len(table.Cases), len(mutants))
}

// wantCounted holds the numbers of docs/iam/README.md against what was evaluated.
func wantCounted(t *testing.T, cases, mutants int) {
	t.Helper()
	const fewest = 149 // in the first evaluation
	page, err := os.ReadFile("../docs/iam/README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(\d+) cases .*? (\d+) changes`).FindStringSubmatch(strings.ReplaceAll(string(page), "\n", " "))
	if want := []string{strconv.Itoa(cases), strconv.Itoa(mutants)}; cases < fewest || len(said) != 3 || !slices.Equal(said[1:], want) {
		t.Errorf("docs/iam/README.md says %q, want %d cases and %d changes, and at least %d cases", said, cases, mutants, fewest)
	}
}

// TestThePoliciesLinted: parliament finds nothing but what the table explains.
func TestThePoliciesLinted(t *testing.T) {
	racepass.OneGoroutine(t)
	policies, callers := renderedPolicies(t)
	table, err := iamsim.ReadTable(policyCases, callers)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, finding := range iamsim.Lint(t, policies) {
		policy, rest, _ := strings.Cut(finding, " ")
		role, _, _ := strings.Cut(policy, "/") // variants have the findings of their role
		found = append(found, role+" "+rest)
	}
	for _, finding := range slices.Compact(slices.Sorted(slices.Values(found))) {
		if _, ok := table.False[finding]; !ok {
			t.Errorf("parliament: %s", finding)
		}
	}
	for finding := range table.False {
		if !slices.Contains(found, finding) {
			t.Errorf("parliament no longer finds this: %s", finding)
		}
	}
}
