package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/findings"
)

// asMain has the test binary be first-account.
const asMain = "FIRST_ACCOUNT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// world is an account of the stand-ins. They do not evaluate policies: the hooks do what those of Remuda come to, and what a session's own
// policy denies.
type world struct {
	*testing.T
	proxy  *awstest.Proxy
	gap    *ec2gap.EC2
	client *ec2.Client
	image  string // for arm64
	x86    string // the image for x86

	mu       sync.Mutex
	denied   map[string][]string // by the access keys of sessions
	consoles map[string]string   // by machine
	rights   string              // of the host that tries its role, as its program aws has them
	boots    string              // what machines write to their consoles; empty: what their scripts do
	typeless bool                // the Errors of launches name no type
	script   sync.Mutex          // it runs once
	stdout   bytes.Buffer
	stderr   bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	proxy.Route("dynamodb", awstest.DynamoDB(t))
	w := &world{T: t, proxy: proxy, gap: ec2gap.Install(proxy), denied: map[string][]string{}, consoles: map[string]string{}, rights: "own"}
	w.client = ec2.NewFromConfig(awstest.Config(t, proxy.URL()))
	images, err := w.client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
	w.check(err)
	for _, i := range images.Images {
		switch i.Architecture {
		case types.ArchitectureValuesArm64:
			w.image = *i.ImageId
		case types.ArchitectureValuesX8664:
			w.x86 = *i.ImageId
		}
	}
	proxy.Wrap("sts", "AssumeRole", w.assumeRole)
	proxy.Wrap("ec2", "DescribeImages", w.amazonLinux)
	proxy.Wrap("ec2", "CreateFleet", w.tagParts)
	proxy.Wrap("ec2", "CreateFleet", w.permitted)
	proxy.Wrap("ec2", "CreateFleet", w.withoutRole)
	proxy.Wrap("ec2", "RunInstances", w.permitted)
	proxy.Wrap("ec2", "TerminateInstances", w.permitted)
	proxy.Handle("ec2", "GetConsoleOutput", w.console)
	return w
}

// set changes the world for the hooks.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// amazonLinux gives moto's image for Amazon's.
func (w *world) amazonLinux(next awstest.Hook) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err == nil && form.Get("Owner.1") == "amazon" {
			id := w.image
			if strings.HasSuffix(form.Get("Filter.1.Value.1"), "-x86_64") {
				id = w.x86
			}
			r = awstest.WithForm(r, url.Values{"Action": {"DescribeImages"}, "Version": {form.Get("Version")}, "ImageId.1": {id}})
		}
		next(rw, r, forward)
	}
}

var accessKeyID = regexp.MustCompile(`<AccessKeyId>([^<]+)<`)

// assumeRole remembers what the session's policy denies.
func (w *world) assumeRole(next awstest.Hook) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err != nil {
			awstest.Fail(rw, r, http.StatusBadRequest, "MalformedQueryString", err.Error())
			return
		}
		answer := httptest.NewRecorder()
		next(answer, r, forward)
		var policy struct {
			Statement []struct {
				Effect string
				Action []string
			}
		}
		if text := form.Get("Policy"); text != "" {
			if err := json.Unmarshal([]byte(text), &policy); err != nil {
				w.Errorf("policy of a session: %v", err)
			}
		}
		if key := accessKeyID.FindStringSubmatch(answer.Body.String()); key != nil {
			w.mu.Lock()
			w.denied[key[1]] = []string{}
			for _, s := range policy.Statement {
				if s.Effect == "Deny" {
					w.denied[key[1]] = s.Action
				}
			}
			w.mu.Unlock()
		}
		(&awstest.Answer{Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}).Write(rw)
	}
}

var credential = regexp.MustCompile(`Credential=([^/]+)/`)

// session is what the caller's session may not do; false for the administrator.
func (w *world) session(r *http.Request) ([]string, bool) {
	key := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	w.mu.Lock()
	defer w.mu.Unlock()
	if key == nil {
		return nil, false
	}
	denied, ok := w.denied[key[1]]
	return denied, ok
}

var (
	launchedID = regexp.MustCompile(`<item>(i-[0-9a-f]+)</item>`)
	partID     = regexp.MustCompile(`<(?:volumeId|networkInterfaceId)>([^<]+)<`)
)

// tagParts tags the volumes and interfaces of a launch as the call says, which moto does not.
func (w *world) tagParts(next awstest.Hook) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		answer := httptest.NewRecorder()
		next(answer, r, forward)
		fleet := regexp.MustCompile(`first-account-[a-z0-9]{6}`).FindString(form.Get("ClientToken"))
		for _, id := range launchedID.FindAllStringSubmatch(answer.Body.String(), -1) {
			var parts []byte
			for _, operation := range []string{"DescribeVolumes", "DescribeNetworkInterfaces"} {
				of := url.Values{"Action": {operation}, "Version": {form.Get("Version")}, "Filter.1.Name": {"attachment.instance-id"}, "Filter.1.Value.1": {id[1]}}
				parts = append(parts, forward(awstest.WithForm(r, of)).Body...)
			}
			tags := url.Values{"Action": {"CreateTags"}, "Version": {form.Get("Version")}, "Tag.1.Key": {"remuda:fleet"}, "Tag.1.Value": {fleet}}
			for i, part := range partID.FindAllStringSubmatch(string(parts), -1) {
				tags.Set(fmt.Sprintf("ResourceId.%d", i+1), part[1])
			}
			if tagged := forward(awstest.WithForm(r, tags)); err != nil || tagged.Status != http.StatusOK {
				w.Errorf("tag the parts of a machine: %v %s", err, tagged.Body)
			}
		}
		(&awstest.Answer{Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}).Write(rw)
	}
}

// atOnce holds the first call by the token of the second order back until the second one by it has come. That is the order which is made twice
// at once if the first launch succeeds.
func (w *world) atOnce(next awstest.Hook) awstest.Hook {
	second := make(chan struct{})
	var calls atomic.Int64
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err == nil && strings.HasSuffix(form.Get("ClientToken"), "-order-2") {
			switch calls.Add(1) {
			case 1:
				select {
				case <-second:
				case <-r.Context().Done():
				}
			case 2:
				close(second)
			}
		}
		next(rw, r, forward)
	}
}

// permitted refuses what the policies of Remuda and of the session do not allow.
func (w *world) permitted(next awstest.Hook) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		denied, session := w.session(r)
		if err == nil && session && (slices.Contains(denied, "ec2:"+form.Get("Action")) || !w.ours(r, form, forward)) {
			awstest.Fail(rw, r, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
			return
		}
		next(rw, r, forward)
	}
}

// ours reports whether a launch has the tag of its fleet, or a machine to be ended has it.
func (w *world) ours(r *http.Request, form url.Values, forward func(*http.Request) *awstest.Answer) bool {
	if form.Get("Action") != "TerminateInstances" {
		return strings.Contains(form.Encode(), url.QueryEscape("remuda:fleet"))
	}
	tags := forward(awstest.WithForm(r, url.Values{
		"Action": {"DescribeTags"}, "Version": {form.Get("Version")}, "Filter.1.Name": {"resource-id"}, "Filter.1.Value.1": {form.Get("InstanceId.1")},
	}))
	return regexp.MustCompile(`first-account-[a-z0-9]{6}<`).Match(tags.Body)
}

// withoutRole answers a launch in a session that may not pass the role, as CreateFleet does: for each offering that it tries.
func (w *world) withoutRole(next awstest.Hook) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if denied, _ := w.session(r); err != nil || !slices.Contains(denied, "iam:PassRole") {
			next(rw, r, forward)
			return
		}
		overrides := "<subnetId>" + form.Get("LaunchTemplateConfigs.1.Overrides.1.SubnetId") + "</subnetId>"
		w.mu.Lock()
		typeless := w.typeless
		w.mu.Unlock()
		if !typeless {
			overrides = "<instanceType>t4g.medium</instanceType>" + overrides
		}
		answerXML(rw, `<CreateFleetResponse><fleetId>fleet-1</fleetId><errorSet><item><launchTemplateAndOverrides><overrides>`+overrides+
			`</overrides></launchTemplateAndOverrides><errorCode>UnauthorizedOperation</errorCode><errorMessage>You are not authorized.</errorMessage></item></errorSet></CreateFleetResponse>`)
	}
}

func answerXML(rw http.ResponseWriter, text string) {
	(&awstest.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: []byte(text)}).Write(rw)
}

// console is what a machine has written. The one with a script of its own has run that.
func (w *world) console(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
	form, err := awstest.Form(r)
	if err != nil {
		awstest.Fail(rw, r, http.StatusBadRequest, "MalformedQueryString", err.Error())
		return
	}
	id := form.Get("InstanceId")
	w.script.Lock()
	defer w.script.Unlock()
	w.mu.Lock()
	text, known := w.consoles[id]
	if !known && w.boots != "" {
		text, known = w.boots, true
	}
	w.mu.Unlock()
	if !known {
		var ended bool
		if text, ended = w.runScript(id); ended {
			forward(awstest.WithForm(r, url.Values{"Action": {"TerminateInstances"}, "Version": {form.Get("Version")}, "InstanceId.1": {id}}))
		}
		w.mu.Lock()
		w.consoles[id] = text
		w.mu.Unlock()
	}
	answerXML(rw, "<GetConsoleOutputResponse><instanceId>"+id+"</instanceId><output>"+base64.StdEncoding.EncodeToString([]byte(text))+"</output></GetConsoleOutputResponse>")
}

// runScript runs the user data of the machine that tries its role, with programs that answer as AWS does. It reports whether the script has
// ended its machine.
func (w *world) runScript(id string) (console string, ended bool) {
	script := ""
	for _, c := range w.proxy.Calls() {
		form, err := url.ParseQuery(string(c.Body))
		if c.Operation == "RunInstances" && err == nil && form.Get("UserData") != "" {
			text, err := base64.StdEncoding.DecodeString(form.Get("UserData"))
			if err != nil {
				w.Errorf("user data: %v", err)
			}
			script = string(text)
		}
	}
	key := regexp.MustCompile(`OTHER_KEY=([^: ]+):`).FindStringSubmatch(script)
	prefix := regexp.MustCompile(`PREFIX=(\S+)`).FindStringSubmatch(script)
	if key == nil || prefix == nil {
		w.Error("no machine was launched with a script")
		return "", false
	}
	w.mu.Lock()
	rights := w.rights
	w.mu.Unlock()
	bin, err := filepath.Abs("testdata/host")
	if err != nil {
		w.Error(err)
	}
	dir := w.TempDir()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "CONSOLE=" + filepath.Join(dir, "console"),
		"STUB_ROLE=" + key[1], "STUB_MACHINE=" + id, "STUB_FLEET=" + prefix[1], "STUB_RIGHTS=" + rights,
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Errorf("the script of the host: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "console"))
	if err != nil {
		w.Error(err)
	}
	_, err = os.Stat(filepath.Join(dir, "ended"))
	return "some lines of the kernel\r\n" + strings.ReplaceAll(string(text), "\n", "\r\n"), err == nil
}

// quick are arguments for stand-ins. What is waited for and does not come takes as long as Settle.
var quick = []string{"--poll", "10ms", "--settle", "2s", "--turn", "1ms"}

// command is the program with arguments.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], slices.Concat(quick, args)...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.Env = append(cmd.Env, w.proxy.Environ()...)
	w.stdout.Reset()
	w.stderr.Reset()
	cmd.Stdout, cmd.Stderr = &w.stdout, &w.stderr
	return cmd
}

// run runs the program to its end, and returns its exit code.
func (w *world) run(args ...string) int {
	w.Helper()
	return w.wait(w.start(args...))
}

func (w *world) start(args ...string) *exec.Cmd {
	w.Helper()
	cmd := w.command(args...)
	w.check(cmd.Start())
	return cmd
}

func (w *world) wait(cmd *exec.Cmd) int {
	w.Helper()
	stop := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	err := cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// verdicts are those of a report in JSON, by the assumption.
func (w *world) verdicts() map[string]findings.Verdict {
	w.Helper()
	var report struct{ Findings []findings.Finding }
	if err := json.Unmarshal(w.stdout.Bytes(), &report); err != nil {
		w.Fatalf("%v\n%s\n%s", err, &w.stdout, &w.stderr)
	}
	got := map[string]findings.Verdict{}
	for _, f := range report.Findings {
		got[f.Name] = f.Verdict
	}
	return got
}

// left is what lives in the account.
func (w *world) left() []string {
	w.Helper()
	var left []string
	ctx := context.WithoutCancel(w.Context())
	cfg := awstest.Config(w.T, w.proxy.URL())
	machines, err := w.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	w.check(err)
	for _, r := range machines.Reservations {
		for _, i := range r.Instances {
			if i.State.Name != types.InstanceStateNameTerminated {
				left = append(left, *i.InstanceId)
			}
		}
	}
	// Moto leaves the volume of an image attached to a machine that has ended.
	volumes, err := w.client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: aws.String("status"), Values: []string{"available"}}}})
	w.check(err)
	for _, v := range volumes.Volumes {
		left = append(left, *v.VolumeId)
	}
	templates, err := w.client.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	w.check(err)
	for _, t := range templates.LaunchTemplates {
		left = append(left, *t.LaunchTemplateName)
	}
	tables, err := dynamodb.NewFromConfig(cfg).ListTables(ctx, &dynamodb.ListTablesInput{})
	w.check(err)
	left = append(left, tables.TableNames...)
	queues, err := sqs.NewFromConfig(cfg).ListQueues(ctx, &sqs.ListQueuesInput{})
	w.check(err)
	left = append(left, queues.QueueUrls...)
	roles, err := iam.NewFromConfig(cfg).ListRoles(ctx, &iam.ListRolesInput{})
	w.check(err)
	for _, r := range roles.Roles {
		left = append(left, *r.RoleName)
	}
	profiles, err := iam.NewFromConfig(cfg).ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	w.check(err)
	for _, p := range profiles.InstanceProfiles {
		left = append(left, *p.InstanceProfileName)
	}
	return left
}

// clean fails if something is left.
func (w *world) clean() {
	w.Helper()
	if left := w.left(); len(left) > 0 {
		w.Errorf("left over: %q\n%s", left, &w.stderr)
	}
}
