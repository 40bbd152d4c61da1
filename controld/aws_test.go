package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/permissions"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var update = flag.Bool("update", false, "write the files that are compared with what the code makes")

const awsExample = "../examples/controld-aws.yaml"

// TestThePolicies keeps docs/iam in step with what the code calls.
func TestThePolicies(t *testing.T) {
	for _, role := range []string{"controld", "refresh", "host"} {
		got := controld(t, "iam", "--config", awsExample, "--account", "123456789012", "--role", role)
		if got.code != 0 {
			t.Fatal(got)
		}
		path := "../docs/iam/" + role + ".json"
		if *update {
			if err := os.WriteFile(path, []byte(got.stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.stdout); diff != "" {
			t.Errorf("%s is not what the code needs; write it with go test ./controld -run ThePolicies -update (-file +code):\n%s", path, diff)
		}
		// IAM allows 6,144 characters without white space.
		if n := len(strings.Join(strings.Fields(got.stdout), "")); n > 6144 {
			t.Errorf("%s has %d characters, more than IAM allows", path, n)
		}
	}
}

func TestTheHostRoleMayHaveAnotherName(t *testing.T) {
	got := controld(t, "iam", "--config", awsExample, "--host-role", "ci/hosts")
	if got.code != 0 || !strings.Contains(got.stdout, `:role/ci/hosts"`) || !strings.Contains(got.stdout, ":instance-profile/remuda-host") {
		t.Errorf("got %+v", got)
	}
}

func TestTheHostProfileMayHaveAPath(t *testing.T) {
	got := controld(t, "iam", "--config", awsExample, "--host-profile", "ci/remuda-host")
	if got.code != 0 || !strings.Contains(got.stdout, `:instance-profile/ci/remuda-host"`) || !strings.Contains(got.stdout, `:role/remuda-host"`) {
		t.Errorf("got %+v", got)
	}
}

func TestPoliciesOfKeys(t *testing.T) {
	text, err := os.ReadFile(awsExample)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"alias/ci": true, "alias/aws/ebs": false} {
		path := filepath.Join(t.TempDir(), "controld.yaml")
		changed := strings.Replace(string(text), "    root_volume_gib: 50 # default\n", "    root_volume_gib: 50\n    kms_key_id: "+key+"\n", 1)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		got := controld(t, "iam", "--config", path)
		if got.code != 0 || strings.Contains(got.stdout, "kms:CreateGrant") != want {
			t.Errorf("%s: got %+v", key, got)
		}
	}
}

func TestEveryActionIsExplained(t *testing.T) {
	got := controld(t, "iam", "--explain")
	for _, p := range permissions.All() {
		if p.Why == "" || !strings.Contains(got.stdout, p.Why) {
			t.Errorf("%s of %s is not explained", p.Action, p.Role)
		}
	}
	if head, _, _ := strings.Cut(got.stdout, "\n"); !slices.Equal(strings.Fields(head), []string{"ROLE", "ACTION", "ON", "WHY"}) {
		t.Errorf("the table begins with %q", head)
	}
}

func TestIAMCommandLines(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no configuration": {[]string{"iam"}, exitUsage, "--config is required"},
		"unknown role":     {[]string{"iam", "--config", awsExample, "--role", "root"}, exitUsage, `"root" is none of controld, refresh and host`},
		"no account":       {[]string{"iam", "--config", awsExample, "--account", "acme"}, exitUsage, `"acme" is not the id of an account`},
		"a local fleet":    {[]string{"iam", "--config", "../examples/controld.yaml"}, exitConfiguration, "has no aws section"},
		"no such output":   {[]string{"config", "check", "--aws", "--output", "yaml", awsExample}, exitUsage, "neither table nor json"},
		"output alone":     {[]string{"config", "check", "--output", "json", awsExample}, exitUsage, "--output json is for --aws"},
		"a local check":    {[]string{"config", "check", "--aws", "../examples/controld.yaml"}, exitUsage, "has no aws section"},
	} {
		if got := controld(t, test.args...); got.code != test.code || !strings.Contains(got.stderr, test.says) {
			t.Errorf("%s: got %+v, want code %d and %q", name, got, test.code, test.says)
		}
	}
}

// account is an empty account in the emulators, as controld finds it by its
// environment.
type account struct {
	proxy *awstest.Proxy
	cfg   sdk.Config
	ec2   *ec2gap.EC2
	// quotas of vCPU, by code. One that is not there may not be read.
	quotas map[string]int
}

func newAccount(t *testing.T) account {
	t.Helper()
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	proxy.Route("dynamodb", awstest.DynamoDB(t))
	a := account{proxy, awstest.Config(t, proxy.URL()), ec2gap.Install(proxy), map[string]int{"L-1216C47A": 64, "L-34B43A08": 64}}
	proxy.Handle("servicequotas", "GetServiceQuota", a.serviceQuota)
	t.Setenv("REMUDA_TEST_TOKEN", "x") // as the configuration names it
	for _, variable := range proxy.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return a
}

// serviceQuota answers as Service Quotas does; moto knows no quota of EC2.
func (a account) serviceQuota(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
	var asked struct{ ServiceCode, QuotaCode string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.ServiceCode != "ec2" {
		awstest.Fail(w, r, http.StatusBadRequest, "NoSuchResourceException", "The request failed because the specified service does not exist.")
		return
	}
	value, ok := a.quotas[asked.QuotaCode]
	if !ok {
		awstest.Fail(w, r, http.StatusBadRequest, "AccessDeniedException", "User: arn:aws:sts::123456789012:assumed-role/controld/x is not authorized to perform: servicequotas:GetServiceQuota")
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	fmt.Fprintf(w, `{"Quota":{"ServiceCode":"ec2","QuotaCode":%q,"Value":%d.0}}`, asked.QuotaCode, value)
}

// addHostRole makes the instance profile of the hosts.
func (a account) addHostRole(t *testing.T) {
	t.Helper()
	client, name := iam.NewFromConfig(a.cfg), sdk.String("remuda-host")
	trust, err := os.ReadFile("../docs/iam/host-trust.json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: sdk.String(string(trust))})
	if err == nil {
		_, err = client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	}
	if err == nil {
		_, err = client.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// configuration names what is in the account.
func (a account) configuration(t *testing.T) string {
	t.Helper()
	client := ec2api.NewFromConfig(a.cfg)
	subnets, err := client.DescribeSubnets(t.Context(), &ec2api.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := client.DescribeSecurityGroups(t.Context(), &ec2api.DescribeSecurityGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	images, err := client.DescribeImages(t.Context(), &ec2api.DescribeImagesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "controld.yaml", `
aws:
  region: us-east-1
  instance_profile: remuda-host
  ec2:
    images: {x86_64: `+*images.Images[0].ImageId+`}
    subnets: [`+*subnets.Subnets[0].SubnetId+`, `+*subnets.Subnets[1].SubnetId+`]
    security_groups: [`+*groups.SecurityGroups[0].GroupId+`]
github: {token_env: REMUDA_TEST_TOKEN}
pools:
  default: {resource_classes: [large]}
`)
}

// backendsOf a configuration.
func backendsOf(t *testing.T, path string) *backends {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newAWSBackends(t.Context(), c, inputsOf(t, c), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refreshed are the backends of a configuration after a refresh.
func refreshed(t *testing.T, path string) *backends {
	t.Helper()
	p := backendsOf(t, path)
	if _, err := p.ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCheckInTheAccount looks, brings what is missing as a refresh does, and
// looks again.
func TestCheckInTheAccount(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshotOnlyReads")
	a := newAccount(t)
	path := a.configuration(t)
	if got := controld(t, "config", "check", "--aws", path); got.code != exitConfiguration || !strings.Contains(got.stderr, "aws.instance_profile: ") ||
		!strings.Contains(got.stderr, "create it (docs/iam)") {
		t.Errorf("without the hosts' profile: %+v", got)
	}
	a.addHostRole(t)
	got := controld(t, "config", "check", "--aws", path)
	for _, says := range []string{
		"would be created  table            remuda-instances", "would be created  queue            remuda-large-spot",
		"would be created  launch-template  remuda-default",
	} {
		if !strings.Contains(got.stdout, says) {
			t.Errorf("the check does not say %q:\n%s%s", says, got.stdout, got.stderr)
		}
	}
	if got.code != 0 {
		t.Errorf("the check ends with %d: %s", got.code, got.stderr)
	}

	p := backendsOf(t, path)
	if p.launchRate.PerSecond != 2 || p.launchRate.Burst != 3 { // those of EC2, else a burst of jobs is a burst of calls
		t.Errorf("launches are gathered beyond %+v", p.launchRate)
	}
	large := fleet.Class{CPU: 2, MemoryMiB: 4096}
	if !p.sells(large, []string{"c6i.*"}) || p.sells(large, []string{"zz9.*"}) {
		t.Error("types that EC2 does not sell are not known")
	}
	order := lifecycle.LaunchOrder{Pool: "default", CPU: 2, MemoryMiB: 4096, InstanceTypes: []string{"g5.*"}}
	if why := p.outside(order); !strings.Contains(why, "pool default has no type that matches g5.*") {
		t.Errorf("types that the pool does not allow: %q", why)
	}
	made, err := p.ensure(t.Context(), false)
	if err != nil || strings.Count(got.stdout, "would be created") != len(made) {
		t.Errorf("%d were made, of these:\n%s%v", len(made), got.stdout, err)
	}
	if again := controld(t, "config", "check", "--aws", path); again.code != 0 || !strings.Contains(again.stdout, "AWS: nothing to create or change") {
		t.Errorf("afterwards: %+v", again)
	}
}

// TestCheckOfPermissionsAndQuotas: what EC2 says about calls with DryRun, and what Service Quotas allows beside what full pools need.
func TestCheckOfPermissionsAndQuotas(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshotOnlyReads")
	a := newAccount(t)
	a.addHostRole(t)
	text, err := os.ReadFile(a.configuration(t))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "controld.yaml", string(text)+"  build: {resource_classes: [large, 4xlarge], usage_classes: [spot], maximum: 5}\n")
	check := func(args ...string) result {
		return controld(t, append([]string{"config", "check", "--aws"}, append(args, path)...)...)
	}
	says := func(got result, code int, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(got.stdout, line+"\n") {
				t.Errorf("the check does not say\n%s\n%s%s", line, got.stdout, got.stderr)
			}
		}
		if got.code != code {
			t.Errorf("the check ends with %d: %s", got.code, got.stderr)
		}
	}
	before := check()
	if !strings.Contains(before.stdout, "not tried  ec2:CreateFleet         pool default, on-demand  ") || before.code != 0 {
		t.Errorf("before a refresh: %+v", before)
	}
	refreshed(t, path)
	says(check(), 0,
		"allowed    ec2:CreateFleet         pool build, spot         ",
		"allowed    ec2:RunInstances        pool build, spot         ",
		"allowed    ec2:RunInstances        pool default, on-demand  ",
		"not tried  ec2:TerminateInstances                           the fleet has no machine that runs, and only one of its own can be named in such a call; check again once a host is there",
		"enough     quota L-1216C47A  64 vCPU  Running On-Demand Standard instances; needed: pool default has no maximum, each large takes 2",
		"too small  quota L-34B43A08  64 vCPU  All Standard Spot Instance Requests; needed: 80 of pool build (5 x 4xlarge), pool default has no maximum, each large takes 2; "+
			"ask Service Quotas for more, or write a smaller maximum",
	)
	a.addTemplate(t, "another", "remuda-2")
	a.addTemplate(t, "stranger", "remuda2")
	const overlaps = "overlaps  prefix remuda-2  the prefix of another fleet: queues and launch templates of both may have one name, " +
		"and each may use queues of the other that have no tag; choose another prefix"
	if got := check(); strings.Count(got.stdout, "overlaps") != 1 {
		t.Errorf("one prefix overlaps with ours:\n%s", got.stdout)
	} else {
		says(got, 0, overlaps)
	}
	a.ec2.DenyFor("RunInstances", "iam:PassRole")
	says(check(), exitFailure, "denied     ec2:RunInstances        pool build, spot         it needs iam:PassRole; attach the statements HostRole of `controld iam`")
	a.ec2.Deny("RunInstances")
	delete(a.quotas, "L-1216C47A")
	denied := check()
	says(denied, exitFailure,
		"allowed    ec2:CreateFleet         pool build, spot         ",
		"denied     ec2:RunInstances        pool build, spot         attach the statements LaunchTemplates, UsedByLaunches, UsedByTemplates, MadeByLaunches of `controld iam`",
	)
	if !strings.Contains(denied.stdout, "not known  quota L-1216C47A  0 vCPU   Running On-Demand Standard instances; needed: ") || !strings.Contains(denied.stdout, "AccessDeniedException") {
		t.Errorf("a quota that may not be read:\n%s", denied.stdout)
	}
	a.wantReport(t, check("--output", "json"))
}

// addTemplate makes a launch template of a fleet.
func (a account) addTemplate(t *testing.T, name, prefix string) {
	t.Helper()
	_, err := ec2api.NewFromConfig(a.cfg).CreateLaunchTemplate(t.Context(), &ec2api.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "m5.large"},
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{{Key: sdk.String("remuda:fleet"), Value: &prefix}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantReport: the document for programs says the same.
func (a account) wantReport(t *testing.T, got result) {
	t.Helper()
	var report accountReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != exitFailure || !strings.Contains(got.stderr, ": ok\n") || !strings.HasPrefix(got.stdout, "{\n ") {
		t.Fatalf("%v in %+v", err, got)
	}
	want := accountReport{
		Changes: []resourceChange{},
		Permissions: []permissionCheck{
			{resultAllowed, "ec2:CreateFleet", "pool build, spot", ""}, {resultDenied, "ec2:RunInstances", "pool build, spot", "DETAIL"},
			{resultAllowed, "ec2:CreateFleet", "pool default, on-demand", ""}, {resultDenied, "ec2:RunInstances", "pool default, on-demand", "DETAIL"},
			{resultNotTried, "ec2:TerminateInstances", "", "DETAIL"},
		},
		Quotas:   []quotaCheck{{resultUnknown, "L-1216C47A", 0, 0, "DETAIL"}, {resultSmall, "L-34B43A08", 64, 80, "DETAIL"}},
		Prefixes: []prefixCheck{{resultOverlaps, "remuda-2", "DETAIL"}},
	}
	for i := range report.Permissions {
		if report.Permissions[i].Detail != "" {
			report.Permissions[i].Detail = "DETAIL"
		}
	}
	for i := range report.Quotas {
		report.Quotas[i].Detail = "DETAIL"
	}
	for i := range report.Prefixes {
		report.Prefixes[i].Detail = "DETAIL"
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestRehearsals: each pool launches in its first usage class, since its template is its own, and each other usage class is tried once.
func TestRehearsals(t *testing.T) {
	c := config.Default()
	c.ResourceClasses = map[string]config.ResourceClass{"large": {CPU: 2, MemoryMiB: 4096}}
	both := []lifecycle.UsageClass{lifecycle.UsageSpot, lifecycle.UsageOnDemand}
	c.Pools = map[string]config.Pool{
		"a": {ResourceClasses: []string{"large"}, UsageClasses: both},
		"b": {ResourceClasses: []string{"large"}, UsageClasses: both, InstanceTypes: []string{"c6i.*"}},
	}
	orders := rehearsals(c)
	var got []string
	for _, o := range orders {
		got = append(got, fmt.Sprintf("%s %s %d %d %v %v", o.Pool, o.UsageClass, o.CPU, o.MemoryMiB, o.PoolTypes, len(o.InstanceTypes) > 0))
	}
	want := []string{"a spot 2 4096 [] true", "a on-demand 2 4096 [] true", "b spot 2 4096 [c6i.*] false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
}

// TestOverlap: a prefix and a dash begin the names of a fleet.
func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{{"remuda", "remuda", false}, {"remuda", "remuda-prod", true}, {"remuda-prod", "remuda", true}, {"remuda", "remudaprod", false}, {"remuda-prod", "remuda-test", false}} {
		if got := overlap(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// IAM answers from one region for all others. While it is away, controld starts with the role that it has kept.
func TestStartWithoutIAM(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshotOnlyReads")
	a := newAccount(t)
	a.addHostRole(t)
	c, err := config.Load(a.configuration(t))
	if err != nil {
		t.Fatal(err)
	}
	start := func() (*backends, error) {
		return newBackends(t.Context(), c, inputsOf(t, c), hclog.NewNullLogger(), false)
	}
	first, err := start() // before the tables are there
	if err != nil {
		t.Fatal(err)
	}
	away := awstest.Fault{Service: "iam", Kind: awstest.InternalError}
	a.proxy.Inject(away)
	if _, err := start(); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("without anything kept: %v", err)
	}
	if _, err := first.ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	again, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.hostKey("i-1"), first.hostKey("i-1"); got != want {
		t.Errorf("host key %s, want %s", got, want)
	}
}

// The tables are there, and no Refresh has kept the role: those of an older version had none. Any start keeps it.
func TestAStartKeepsTheRole(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshotOnlyReads")
	a := newAccount(t)
	a.addHostRole(t)
	c, err := config.Load(a.configuration(t))
	if err != nil {
		t.Fatal(err)
	}
	tables := dynamo.New(dynamodb.NewFromConfig(a.cfg), storeOptions(c, hclog.NewNullLogger()))
	if _, err := tables.Ensure(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, away := range []bool{false, true} {
		if away {
			a.proxy.Inject(awstest.Fault{Service: "iam", Kind: awstest.InternalError})
		}
		if _, err := newBackends(t.Context(), c, inputsOf(t, c), hclog.NewNullLogger(), false); err != nil {
			t.Errorf("IAM away %t: %v", away, err)
		}
	}
}

func TestCheckWithoutCredentials(t *testing.T) {
	racepass.CoveredBy(t, "TestSnapshotOnlyReads")
	a := newAccount(t)
	path := a.configuration(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	got := controld(t, "config", "check", "--aws", path)
	if got.code == 0 || !strings.Contains(got.stderr, "no AWS credentials") || !strings.Contains(got.stderr, "AWS_PROFILE") {
		t.Errorf("got %+v", got)
	}
}

// TestSnapshotOnlyReads: nothing that it calls in an account with a host, or of
// GitHub, can change a thing.
func TestSnapshotOnlyReads(t *testing.T) {
	a := newAccount(t)
	a.addHostRole(t)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("snapshot calls %s %s of GitHub", r.Method, r.URL)
		}
		fmt.Fprint(w, `{"total_count": 0, "runners": []}`)
	}))
	defer hub.Close()
	path := a.configuration(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = write(t, "controld.yaml", strings.Replace(string(text), "github: {", `github: {url: "`+hub.URL+`/api/v3", `, 1))
	t.Setenv("REMUDA_TEST_TOKEN", "any")
	p := refreshed(t, path)
	version, err := p.templateVersion(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	machines, err := p.compute.Launch(t.Context(), lifecycle.LaunchOrder{
		Token: "token", RequestID: "request", Number: 1, Count: 1, Pool: "default", Repository: "acme/shop", RunID: "1",
		ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"m5.large"}, TemplateVersion: version,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.store.CreateInstance(t.Context(), lifecycle.Record{
		HostKey: machines[0].HostKey, InstanceID: machines[0].InstanceID, Pool: "default", State: lifecycle.StateRunning, Repository: "acme/shop", RunID: "1",
		Assignment: 1,
		Hardware:   lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
		LaunchedAt: time.Now(), CreatedAt: time.Now(), Threshold: time.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	before := len(a.proxy.Calls())
	if got := controld(t, "snapshot", "--config", path); got.code != 0 || !strings.Contains(got.stdout, machines[0].InstanceID) {
		t.Fatalf("snapshot: %+v", got)
	}
	called := map[string]bool{}
	for _, call := range a.proxy.Calls()[before:] {
		called[call.Operation] = true
		if !reads.MatchString(call.Operation) {
			t.Errorf("snapshot calls %s of %s", call.Operation, call.Service)
		}
	}
	for _, want := range []string{"DescribeInstances", "GetInstanceProfile", "BatchGetItem"} {
		if !called[want] {
			t.Errorf("it does not call %s: %v", want, called)
		}
	}
}

var reads = regexp.MustCompile(`^(Describe|Get|BatchGet|List|Query)`)

// TestTheClockOfAWS: the backends of a fleet in AWS know how far the clock of AWS is from ours, with hosts and without.
func TestTheClockOfAWS(t *testing.T) {
	a := newAccount(t)
	a.addHostRole(t)
	path := a.configuration(t)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	services, err := newServiceBackends(t.Context(), c, hclog.NewNullLogger(), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*backends{"with hosts": backendsOf(t, path), "without hosts": services} {
		for _, by := range []time.Duration{0, -6 * time.Hour} {
			a.proxy.Handle("dynamodb", "GetItem", func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
				answer := forward(r)
				answer.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
				answer.Write(w)
			})
			_, _ = p.store.Lease(t.Context(), "any") // there is no table, and the answer has a time too
			if off := (p.clockOffset() - by).Abs(); off > 5*time.Second {
				t.Errorf("%s: the clock of AWS is said to be %s off, and is %s", name, p.clockOffset(), by)
			}
		}
	}
}

// TestThePolicyOfPoolsThatStopOrReset hosts has the actions for that, and is no longer than IAM allows.
func TestThePolicyOfPoolsThatStopOrReset(t *testing.T) {
	example, err := os.ReadFile(awsExample)
	if err != nil {
		t.Fatal(err)
	}
	stops := filepath.Join(t.TempDir(), "controld.yaml")
	text := strings.Replace(string(example), "\npools:\n", "\npools:\n  stopping:\n    stopped: {maximum: 2}\n    reset: root-volume\n", 1)
	if err := os.WriteFile(stops, []byte(text), 0o600); err != nil || text == string(example) {
		t.Fatalf("the example has no pools: %v", err)
	}
	for path, want := range map[string]bool{awsExample: false, stops: true} {
		got := controld(t, "iam", "--config", path, "--account", "123456789012", "--role", "controld")
		for _, action := range []string{"StopInstances", "StartInstances", "CreateReplaceRootVolumeTask", "DescribeReplaceRootVolumeTasks"} {
			if has := strings.Contains(got.stdout, "ec2:"+action); has != want || got.code != 0 {
				t.Errorf("%s: the policy has %s: %t, want %t; %s", path, action, has, want, got.stderr)
			}
		}
		if n := len(strings.Join(strings.Fields(got.stdout), "")); n > 6144 {
			t.Errorf("%s: the policy has %d characters, more than IAM allows", path, n)
		}
	}
}
