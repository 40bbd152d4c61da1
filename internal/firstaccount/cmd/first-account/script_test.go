package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/iamsim"
)

// TestScript runs what a person runs.
func TestScript(t *testing.T) {
	w := newWorld(t)
	for args, want := range map[string]string{"--help": "usage: scripts/first-account [--plan | --yes | --clean]", "--plan --only boot": "  boot          waits until", "--version": "first-account "} {
		cmd := exec.Command("../../../../scripts/first-account", strings.Fields(args)...)
		cmd.Env = append(os.Environ(), w.proxy.Environ()...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestNoRegion: the error names the flag, since a run has no configuration.
func TestNoRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	for _, args := range [][]string{{"--plan"}, {"--plan", "--region", "eu west"}} {
		_, err := run(t.Context(), args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "is no region: give --region or set AWS_REGION, such as eu-west-1") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestPolicies evaluates the policies that a run makes, with the names and the path of its roles.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	if code := w.run("--yes", "--only", "errors"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &w.stderr)
	}
	policies, names := map[string]iamsim.Document{}, map[string]string{}
	for _, c := range w.proxy.Calls() {
		form, err := url.ParseQuery(string(c.Body))
		if err != nil || c.Operation != "PutRolePolicy" {
			continue
		}
		var d iamsim.Document
		if err := json.NewDecoder(bytes.NewReader([]byte(form.Get("PolicyDocument")))).Decode(&d); err != nil {
			t.Fatal(err)
		}
		policies[form.Get("PolicyName")], names[form.Get("PolicyName")] = d, form.Get("RoleName")
	}
	caller, err := sts.NewFromConfig(awstest.Config(t, w.proxy.URL())).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	w.check(err)
	account := *caller.Account
	id, _, _ := strings.Cut(strings.TrimPrefix(names["host"], "first-account-"), "-")
	fleet := "first-account-" + id
	ours := map[string]any{"aws:RequestTag/remuda:fleet": fleet}
	var cases []iamsim.Case
	add := func(policy, want, action, resource string, context map[string]any) {
		cases = append(cases, iamsim.Case{
			Policy: policy, Principal: "arn:aws:iam::" + account + ":role/first-account/" + names[policy], Account: account,
			Action: action, Resource: strings.ReplaceAll(resource, "ACCOUNT", account), Context: context, Want: want,
		})
	}
	add("controld", iamsim.Allowed, "ec2:CreateFleet", "arn:aws:ec2:us-east-1:ACCOUNT:fleet/fleet-1", ours)
	add("controld", iamsim.Denied, "ec2:CreateFleet", "arn:aws:ec2:us-east-1:ACCOUNT:fleet/fleet-1", map[string]any{"aws:RequestTag/remuda:fleet": "remuda"})
	add("controld", iamsim.Denied, "ec2:TerminateInstances", "arn:aws:ec2:us-east-1:ACCOUNT:instance/i-1", map[string]any{"ec2:ResourceTag/remuda:fleet": fleet + "-other"})
	add("controld", iamsim.Allowed, "ec2:TerminateInstances", "arn:aws:ec2:us-east-1:ACCOUNT:instance/i-1", map[string]any{"ec2:ResourceTag/remuda:fleet": fleet})
	add("controld", iamsim.Allowed, "iam:PassRole", "arn:aws:iam::ACCOUNT:role/first-account/"+fleet+"-host", map[string]any{"iam:PassedToService": "ec2.amazonaws.com"})
	add("controld", iamsim.Allowed, "iam:GetInstanceProfile", "arn:aws:iam::ACCOUNT:instance-profile/first-account/"+fleet+"-host", map[string]any{})
	add("controld", iamsim.Allowed, "dynamodb:PutItem", "arn:aws:dynamodb:us-east-1:ACCOUNT:table/"+fleet+"-leases", map[string]any{})
	add("refresh", iamsim.Allowed, "dynamodb:CreateTable", "arn:aws:dynamodb:us-east-1:ACCOUNT:table/"+fleet+"-leases", map[string]any{})
	add("refresh", iamsim.Denied, "dynamodb:DeleteTable", "arn:aws:dynamodb:us-east-1:ACCOUNT:table/"+fleet+"-leases", map[string]any{})
	add("refresh", iamsim.Allowed, "sqs:CreateQueue", "arn:aws:sqs:us-east-1:ACCOUNT:"+fleet+"-malformed", map[string]any{})
	own := map[string]any{"aws:userid": "AROA:i-1", "dynamodb:LeadingKeys": []string{"AROA:i-1"}}
	other := map[string]any{"aws:userid": "AROA:i-1", "dynamodb:LeadingKeys": []string{"AROA:i-2"}}
	add("host", iamsim.Allowed, "dynamodb:GetItem", "arn:aws:dynamodb:us-east-1:ACCOUNT:table/"+fleet+"-instances", own)
	add("host", iamsim.Denied, "dynamodb:GetItem", "arn:aws:dynamodb:us-east-1:ACCOUNT:table/"+fleet+"-instances", other)
	result := iamsim.Simulate(t, policies, cases, []iamsim.Mutant{})
	for i, c := range cases {
		if result.Got[i] != c.Want {
			t.Errorf("%s: %s, want %s", c, result.Got[i], c.Want)
		}
	}
}
