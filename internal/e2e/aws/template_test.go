package aws_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/templates"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const awsPage = "../../../docs/aws.md"

// install is an account in which a fleet is installed with the commands of docs/aws.md.
type install struct {
	*stage
	operator *awstest.Proxy
	dir      string   // where the commands run
	root     string   // of controld's instance
	steps    []string // the blocks of the page that are run, in their order
	env      []string
	grpc     string // controld's address, which the name of the load balancer stands for
	before   string // the resources of the account
}

// TestAFleetInstalled goes through docs/aws.md: the commands of the page are run as they stand there. Moto makes the resources of the stack;
// for what it lacks see internal/awstest/emulators/cloudformation.py. The instance of controld is this machine: the script of its user data is
// run in a directory, with stand-ins for dnf, systemctl, curl and cfn-signal.
func TestAFleetInstalled(t *testing.T) {
	i := newInstall(t)
	i.before = i.inventory()
	i.run("2. Store the package", "3. Make an authority", "4. Store the secrets", "5. Deploy")
	i.stackHasItsResources()
	i.boot()
	i.run("6. Make the tables", "7. Tell GitHub")
	i.jobIsServed()
	i.run("8. Run a job")
	i.update()
	i.run("Remove it")
	if diff := cmp.Diff(i.before, i.inventory()); diff != "" {
		t.Errorf("the account has other resources than before the stack (-before +after):\n%s", diff)
	}
	if !strings.Contains(i.aws("dynamodb", "list-tables", "--output", "text"), "remuda-instances") {
		t.Error("the tables went with the stack")
	}
	i.everythingGoes()
}

// everythingGoes: what Refresh made is removed by the page, and nothing of a fleet whose prefix begins alike.
func (i *install) everythingGoes() {
	i.Helper()
	queue := i.text("QueueUrl", "sqs", "create-queue", "--queue-name", "remuda-prod-small", "--tags", "remuda:fleet=remuda-prod")
	i.aws("ec2", "create-launch-template", "--launch-template-name", "remuda-prod-small", "--launch-template-data", "InstanceType=m7g.large",
		"--tag-specifications", "ResourceType=launch-template,Tags=[{Key=remuda:fleet,Value=remuda-prod}]")
	i.run("Remove what Refresh made")
	i.same("tables", "", i.text("TableNames", "dynamodb", "list-tables"))
	i.same("queues", queue, i.text("QueueUrls", "sqs", "list-queues"))
	i.same("launch templates", "remuda-prod-small", i.text("LaunchTemplates[].LaunchTemplateName", "ec2", "describe-launch-templates"))
}

func newInstall(t *testing.T) *install {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	i := &install{stage: &stage{TB: t, ctx: ctx, account: emptyAccount(t), log: &buffer{}}, operator: newProxy(t), dir: t.TempDir(), root: t.TempDir()}
	i.github = startGitHub(t)
	i.readPage()
	tree, err := filepath.Abs("../../..")
	check(t, err)
	check(t, os.Symlink(filepath.Join(tree, "deploy"), filepath.Join(i.dir, "deploy")))
	check(t, os.MkdirAll(filepath.Join(i.dir, "bin", "packages"), 0o755))
	check(t, os.MkdirAll(filepath.Join(i.dir, "secrets"), 0o700))
	i.write("bin/packages/remuda-controld-1.0.0-1.aarch64.rpm", "a package", 0o644)
	i.write("secrets/github-token", "standin\n", 0o600)
	image, _, _ := i.account.network()
	// The CLI looks for a profile whose name is empty.
	i.env = append(slices.DeleteFunc(i.operator.Environ(), func(v string) bool { return v == "AWS_PROFILE=" }), "AWS_DEFAULT_REGION="+region, "PATH="+filepath.Join(i.dir, "path")+":"+os.Getenv("PATH"),
		"REPOSITORIES=acme/*", "IMAGE="+image, "MY_ADDRESS=203.0.113.7", "AWS_EC2_METADATA_DISABLED=true",
		"REMUDA_CONFIG="+filepath.Join(i.dir, "remuda.yaml"))
	// Version 1 of the CLI does not read the variable for SQS.
	i.write("path/aws", "#!/bin/bash\n[[ $1 != sqs ]] || set -- --endpoint-url \"$AWS_ENDPOINT_URL\" \"$@\"\nexec "+strings.Join(templates.CLI(t), " ")+` "$@"`+"\n", 0o755)
	i.write("path/controld", "#!/bin/bash\nexec "+filepath.Join(testrun.System.Dir(t), "controld")+` "$@"`+"\n", 0o755)
	return i
}

func (i *install) write(name, text string, mode os.FileMode) {
	i.Helper()
	path := filepath.Join(i.dir, name)
	check(i.TB, os.MkdirAll(filepath.Dir(path), 0o755))
	check(i.TB, os.WriteFile(path, []byte(text), mode))
}

var runBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// readPage takes the blocks that are run. At most eight steps lead to a job.
func (i *install) readPage() {
	i.Helper()
	text, err := os.ReadFile(awsPage)
	check(i.TB, err)
	i.steps = strings.Split(string(text), "\n## ")[1:]
	numbered := slices.DeleteFunc(slices.Clone(i.steps), func(s string) bool { return s[0] < '0' || s[0] > '9' })
	if len(numbered) != 8 {
		i.Errorf("%s has %d steps, want 8", awsPage, len(numbered))
	}
}

// run runs the commands of sections of the page, by the beginning of their headings. What a section sets is there in the next ones.
func (i *install) run(headings ...string) {
	i.Helper()
	for _, heading := range headings {
		at := slices.IndexFunc(i.steps, func(s string) bool { return strings.HasPrefix(s, heading) })
		if at < 0 {
			i.Fatalf("%s has no section %q", awsPage, heading)
		}
		blocks := runBlock.FindAllStringSubmatch(i.steps[at], -1)
		if len(blocks) == 0 {
			i.Fatalf("section %q of %s has nothing to run", heading, awsPage)
		}
		for _, block := range blocks {
			// The page's commands are typed into one shell; here each section has its own, which takes over the variables.
			out := i.bash("set -euo pipefail\n[[ ! -e variables ]] || . ./variables\n" + i.here(block[1]) + "\ndeclare -p BUCKET ADDRESS 2>/dev/null >variables || true\n")
			i.Logf("%s:\n%s", heading, out)
		}
	}
}

// here is a block of the page with the stand-in of GitHub as the GitHub of the stack.
func (i *install) here(block string) string {
	return strings.ReplaceAll(block, `"ImageX86=$IMAGE"`, `"ImageX86=$IMAGE" "GitHubUrl=`+i.github.URL()+`/api/v3"`)
}

func (i *install) bash(script string) string {
	i.Helper()
	cmd := exec.CommandContext(i.ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = i.dir, append(os.Environ(), i.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		i.Fatalf("%v\n%s\n%s\nof:\n%s", err, out, &stderr, script)
	}
	return string(out)
}

// aws calls the CLI.
func (i *install) aws(args ...string) string {
	i.Helper()
	cmd := exec.CommandContext(i.ctx, filepath.Join(i.dir, "path/aws"), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = i.dir, append(os.Environ(), i.env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		i.Fatalf("aws %v: %v", args, err)
	}
	return string(out)
}

// inventory is what there is of all kinds of resources that the stack can have, a line for each.
func (i *install) inventory() string {
	i.Helper()
	script, err := filepath.Abs("testdata/inventory.py")
	check(i.TB, err)
	cmd := exec.CommandContext(i.ctx, templates.CLI(i.TB)[0], script)
	cmd.Env, cmd.Stderr = append(os.Environ(), i.env...), os.Stderr
	out, err := cmd.Output()
	check(i.TB, err)
	return string(out)
}

// absent are the resources that the parameters of the page leave out, each by a condition of the template.
var absent = []string{"AlarmTopic", "HostLogs", "SecretsKeyPolicy"}

// unnamed are made, and moto gives them no id.
var unnamed = []string{"CallsFromInternet", "HealthFromInternet"}

// stackHasItsResources: no resource of the template was left out because moto does not know its type.
func (i *install) stackHasItsResources() {
	i.Helper()
	text, err := os.ReadFile(filepath.Join(i.dir, "deploy/cloudformation/remuda.yaml"))
	check(i.TB, err)
	_, resources, _ := strings.Cut(string(text), "\nResources:\n")
	resources, _, _ = strings.Cut(resources, "\nOutputs:\n")
	made := i.resources()
	for _, found := range regexp.MustCompile(`(?m)^  ([A-Za-z0-9]+):\n(?:    .*\n)*?    Type: AWS`).FindAllStringSubmatch(resources, -1) {
		name := found[1]
		switch want := !slices.Contains(absent, name) && !slices.Contains(unnamed, name); {
		case want && made[name] == "":
			i.Errorf("the stack has no %s", name)
		case !want && made[name] != "":
			i.Errorf("the stack has %s, %s", name, made[name])
		}
	}
	if len(made) < 60 {
		i.Errorf("the stack has %d resources: %v", len(made), made)
	}
}

// resources are the ids of the stack's resources.
func (i *install) resources() map[string]string {
	i.Helper()
	var list struct {
		StackResourceSummaries []struct{ LogicalResourceID, PhysicalResourceID string }
	}
	check(i.TB, json.Unmarshal([]byte(i.aws("cloudformation", "list-stack-resources", "--stack-name", "remuda", "--output", "json")), &list))
	ids := map[string]string{}
	for _, r := range list.StackResourceSummaries {
		ids[r.LogicalResourceID] = r.PhysicalResourceID
	}
	return ids
}

// userData is the script that the instances of controld run.
func (i *install) userData() string {
	i.Helper()
	out, err := i.account.ec2.DescribeLaunchTemplateVersions(i.ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: sdk.String(i.resources()["ControldTemplate"]), Versions: []string{"$Latest"},
	})
	check(i.TB, err)
	text, err := base64.StdEncoding.DecodeString(*out.LaunchTemplateVersions[0].LaunchTemplateData.UserData)
	check(i.TB, err)
	if len(text) > 16<<10 {
		i.Errorf("the user data has %d bytes, and EC2 takes 16 KiB", len(text))
	}
	return string(text)
}

// boot runs the user data in a directory, and starts controld with the configuration and the credentials that it writes.
func (i *install) boot() {
	i.Helper()
	script := i.userData()
	for _, file := range []string{"ca/controld.key", "secrets/github-token", "secrets/webhook-secret"} {
		secret, err := os.ReadFile(filepath.Join(i.dir, file))
		check(i.TB, err)
		if lines := strings.Split(string(secret), "\n"); strings.Contains(script, lines[min(1, len(lines)-2)]) {
			i.Errorf("the user data has %s", file)
		}
	}
	for _, program := range []string{"path/dnf", "path/systemctl", "path/curl", "root/cfn-signal"} {
		i.write(program, "#!/bin/bash\necho \"${0##*/} $*\" >>"+i.dir+"/called\n", 0o755)
	}
	check(i.TB, os.MkdirAll(filepath.Join(i.root, "etc/logrotate.d"), 0o755))
	here := strings.NewReplacer("/etc/", i.root+"/etc/", "/var/log/", i.root+"/var/log/", "/opt/aws/bin/", i.dir+"/root/", "/opt/aws/amazon-cloudwatch-agent/bin/", i.dir+"/root/")
	i.write("boot", here.Replace(script), 0o755)
	cmd := exec.CommandContext(i.ctx, filepath.Join(i.dir, "boot"))
	cmd.Env = append(os.Environ(), i.env...)
	err := cmd.Run()
	log, _ := os.ReadFile(filepath.Join(i.root, "var/log/remuda/boot.log")) // the error says more
	if err != nil {
		i.Fatalf("boot: %v\n%s", err, log)
	}
	called, err := os.ReadFile(filepath.Join(i.dir, "called"))
	check(i.TB, err)
	for _, want := range []string{"systemctl enable --now controld\n", "dnf install -y -q /tmp/", "cfn-signal --exit-code 0 --stack remuda --resource ControldGroup"} {
		if !strings.Contains(string(called), want) {
			i.Errorf("the user data does not call %q:\n%s", want, called)
		}
	}
	i.configured(here)
}

// configured starts controld with the configuration that the instance has, on ports of this machine.
func (i *install) configured(here *strings.Replacer) {
	i.Helper()
	text, err := os.ReadFile(filepath.Join(i.root, "etc/remuda/controld.yaml"))
	check(i.TB, err)
	i.config = filepath.Join(i.dir, "controld.yaml")
	changed := strings.NewReplacer("0.0.0.0:7443", "127.0.0.1:0", "0.0.0.0:7080", "127.0.0.1:0").Replace(string(text))
	check(i.TB, os.WriteFile(i.config, []byte(changed), 0o600))
	role := i.resources()["HostRole"]
	i.account.roleARN = strings.TrimSpace(i.aws("iam", "get-role", "--role-name", role, "--query", "Role.Arn", "--output", "text"))
	out := &buffer{also: i.log}
	i.controld = start(i.TB, out, i.account.controld.Environ(), testrun.System.Dir(i.TB), "controld", "serve", "--config", i.config)
	i.Cleanup(func() {
		i.controld.kill()
		if i.Failed() {
			i.Logf("controld's log:\n%s", i.log)
		}
	})
	addrs := i.controld.ready(i.TB, out, "grpc", "http")
	i.grpc = addrs[0]
	secret, err := os.ReadFile(filepath.Join(i.dir, "secrets/webhook-secret"))
	check(i.TB, err)
	check(i.TB, i.github.SetWebhooks(i.ctx, local.Webhooks{Target: "http://" + addrs[1] + "/webhooks/github", Secret: strings.TrimSpace(string(secret))}))
	// What stands for the load balancer: its name is this controld.
	i.write("path/remuda", fmt.Sprintf("#!/bin/bash\nargs=()\nfor a in \"$@\"; do [[ $a == *:7443 ]] && a=%s; args+=(\"$a\"); done\nexec %s/remuda \"${args[@]}\"\n", i.grpc, testrun.System.Dir(i.TB)), 0o755)
	i.dial()
}

// dial calls controld as the operator.
func (i *install) dial() {
	i.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(i.dir, "ca/operator.crt"), filepath.Join(i.dir, "ca/operator.key"))
	check(i.TB, err)
	text, err := os.ReadFile(filepath.Join(i.dir, "ca/ca.pem"))
	check(i.TB, err)
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}, ServerName: "controld.remuda.internal"}
	config.RootCAs.AppendCertsFromPEM(text)
	conn, err := grpc.NewClient(i.grpc, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	check(i.TB, err)
	i.Cleanup(func() { _ = conn.Close() }) // closing twice is its only error
	i.fleet = remudav1.NewFleetServiceClient(conn)
}

// jobIsServed: a queued job of the page's workflow gets a machine of the stack's subnets, group and profile, and is green.
func (i *install) jobIsServed() {
	i.Helper()
	i.eventually("controld is ready", func() bool { return i.ready() })
	i.machines = startMachines(i.TB, i.account, testrun.System.Dir(i.TB))
	workflow := regexp.MustCompile("(?s)```yaml\n(on: push.*?)```").FindStringSubmatch(strings.Join(i.steps, ""))
	_, err := i.github.StartRun(i.ctx, repository, "501", workflow[1])
	check(i.TB, err)
	run, err := i.github.WaitRun(i.ctx, "501", nil)
	if err != nil || run.Conclusion != "success" {
		i.Fatalf("the job came out as %q (%v): %+v", run.Conclusion, err, run.Jobs)
	}
	all, err := i.account.instances(i.ctx)
	check(i.TB, err)
	made, hosts := i.resources(), 0
	for _, host := range all {
		if !ofFleet(host) {
			continue
		}
		hosts++
		if subnet := sdk.ToString(host.SubnetId); subnet != made["PrivateSubnetA"] && subnet != made["PrivateSubnetB"] {
			i.Errorf("the host is in %s", subnet)
		}
		if len(host.SecurityGroups) != 1 || *host.SecurityGroups[0].GroupId != made["HostSecurityGroup"] {
			i.Errorf("the host has the groups %v", host.SecurityGroups)
		}
	}
	if hosts != 1 {
		i.Errorf("one job got %d hosts", hosts)
	}
	i.launchesHaveTheProfile(made["HostProfile"])
	for _, host := range all {
		if ofFleet(host) && alive(host) {
			_, err := i.fleet.TerminateInstance(i.ctx, &remudav1.TerminateInstanceRequest{InstanceId: *host.InstanceId, Reason: "end of the test"})
			check(i.TB, err)
		}
	}
	i.eventually("the host has gone", func() bool {
		all, err := i.account.instances(i.ctx)
		return err == nil && !slices.ContainsFunc(all, func(h types.Instance) bool { return ofFleet(h) && alive(h) })
	})
}

// launchesHaveTheProfile: moto's instances have none, so it is read from the launch template.
func (i *install) launchesHaveTheProfile(profile string) {
	i.Helper()
	out, err := i.account.ec2.DescribeLaunchTemplateVersions(i.ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: sdk.String("remuda-jobs"), Versions: []string{"$Latest"},
	})
	check(i.TB, err)
	if p := out.LaunchTemplateVersions[0].LaunchTemplateData.IamInstanceProfile; p == nil || sdk.ToString(p.Name) != profile {
		i.Errorf("launches have the profile %v, want %s", p, profile)
	}
}

func (i *install) ready() bool {
	_, err := i.fleet.ListPools(i.ctx, &remudav1.ListPoolsRequest{})
	return err == nil
}

// update changes parameters: what they change has changed, and nothing else is lost.
func (i *install) update() {
	i.Helper()
	before := i.resources()
	i.aws("cloudformation", "deploy", "--stack-name", "remuda", "--template-file", "deploy/cloudformation/remuda.yaml", "--capabilities", "CAPABILITY_IAM",
		"--parameter-overrides", "JobMaximum=3", "CallerCidr=", "AlarmEmail=ci@example.com", "Replicas=2", "HostLogDays=7", "Tags=team: ci, cost-center: a1")
	after := i.resources()
	if script := i.userData(); !strings.Contains(script, "maximum: 3\n") || !strings.Contains(script, "\n  tags: {team: ci, cost-center: a1}\n") {
		i.Errorf("controld's configuration is the one of before:\n%s", script)
	}
	for name, id := range before {
		switch public := strings.HasPrefix(name, "Public") && !strings.HasPrefix(name, "PublicSubnet") && !strings.HasPrefix(name, "PublicRoute"); {
		case public && after[name] != "":
			i.Errorf("%s is still there", name)
		case !public && id != "" && after[name] == "":
			i.Errorf("%s has gone", name)
		}
	}
	if policy := i.aws("iam", "get-role-policy", "--role-name", after["HostRole"], "--policy-name", "host"); before["HostLogs"] != "" ||
		after["HostLogs"] != "/remuda/remuda/hosts" || !strings.Contains(policy, "log-group:/remuda/remuda/hosts:log-stream:i-*/${aws:Ec2InstanceSourcePrivateIPv4}") {
		i.Errorf("the log group of the hosts is %q, was %q, and their policy %s", after["HostLogs"], before["HostLogs"], policy)
	}
	if after["AlarmTopic"] == "" || after["Vpc"] != before["Vpc"] || after["HostProfile"] != before["HostProfile"] {
		i.Errorf("the stack has become %v", after)
	}
}
