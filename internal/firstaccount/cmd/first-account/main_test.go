package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstaccount"
)

// TestStandIns runs everything against the stand-ins, which do what Remuda assumes about AWS.
func TestStandIns(t *testing.T) {
	w := newWorld(t)
	w.proxy.Wrap("ec2", "CreateFleet", w.atOnce)
	code := w.run("--yes", "--output", "json")
	want := map[string]findings.Verdict{}
	for _, list := range firstaccount.Assumptions() {
		for _, a := range list {
			want[a.Name] = findings.Confirmed
		}
	}
	want["key-lives"], want["boot-agent"] = findings.Undecided, findings.Undecided
	if d := cmp.Diff(want, w.verdicts()); d != "" || code != 0 {
		t.Errorf("exit code %d (-want +got):\n%s\n%s\n%s", code, d, &w.stdout, &w.stderr)
	}
	if strings.Contains(w.stdout.String(), "\"assumption\": \"\"") {
		t.Error(w.stdout.String())
	}
	w.clean()
}

// key is the id of a KMS key.
const key = "1234abcd-12ab-34cd-56ef-1234567890ab"

// TestRefuted has AWS do otherwise than assumed.
func TestRefuted(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		refuted []string
		// also are assumptions that hold then.
		also  []string
		world func(*world)
	}{
		"a launch is not allowed": {
			args: []string{"--only", "policy"}, refuted: []string{"launch-allowed"}, also: []string{"template-allowed", "plain-refused"},
			world: func(w *world) { w.gap.Deny("CreateFleet") },
		},
		"a launch without a tag is allowed": {
			args: []string{"--only", "policy"}, refuted: []string{"plain-refused", "other-image-refused"}, also: []string{"launch-allowed"},
			world: func(w *world) {
				w.proxy.Handle("ec2", "RunInstances", fails(http.StatusPreconditionFailed, "DryRunOperation"))
			},
		},
		"EC2's own choice of a security group is not the template's": {
			args: []string{"--only", "policy"}, refuted: []string{"default-group-allowed"}, also: []string{"launch-allowed", "other-image-refused"},
			world: func(w *world) { w.proxy.Wrap("ec2", "RunInstances", refusesTemplate("-plain")) },
		},
		"messages cannot be received": {
			args: []string{"--only", "queues"}, refuted: []string{"messages-allowed"}, also: []string{"queues-made"},
			world: func(w *world) { w.proxy.Handle("sqs", "ReceiveMessage", fails(http.StatusForbidden, "AccessDenied")) },
		},
		"tables may not be written": {
			args: []string{"--only", "tables"}, refuted: []string{"rows-allowed"}, also: []string{"tables-made"},
			world: func(w *world) {
				w.proxy.Handle("dynamodb", "PutItem", fails(http.StatusBadRequest, "AccessDeniedException"))
			},
		},
		"a machine of another fleet may be ended": {
			args: []string{"--only", "policy"}, refuted: []string{"foreign-end-refused"},
			world: func(w *world) {
				w.proxy.Wrap("ec2", "TerminateInstances", dryRun(fails(http.StatusPreconditionFailed, "DryRunOperation")))
			},
		},
		"a dry run without the right fails otherwise": {
			args: []string{"--only", "dry-run"}, refuted: []string{"dry-terminate-instances"}, also: []string{"dry-create-fleet"},
			world: func(w *world) {
				w.proxy.Wrap("ec2", "TerminateInstances", dryRun(fails(http.StatusBadRequest, "InvalidInstanceID.NotFound")))
			},
		},
		"volumes have no tags": {
			args: []string{"--only", "launch"}, refuted: []string{"volume-tags"}, also: []string{"interface-tags", "machine-tags"},
			world: func(w *world) { w.proxy.Wrap("ec2", "DescribeVolumes", without("remuda:fleet")) },
		},
		"a profile is not shown": {
			args: []string{"--only", "launch"}, refuted: []string{"profile-shown"}, also: []string{"machine-tags"},
			world: func(w *world) { w.proxy.Wrap("ec2", "DescribeInstances", without("iamInstanceProfile")) },
		},
		"a token counts for nothing": {
			args: []string{"--only", "token"}, refuted: []string{"token-repeat", "token-other", "token-running"},
			world: func(w *world) {
				w.proxy.Wrap("ec2", "CreateFleet", otherTokens)
				w.proxy.Wrap("ec2", "CreateFleet", w.atOnce)
			},
		},
		"errors name no type": {
			args: []string{"--only", "errors"}, refuted: []string{"errors-type"}, also: []string{"errors-in-answer", "errors-place", "none-fits"},
			world: func(w *world) { w.set(func() { w.typeless = true }) },
		},
		"what no type meets is said otherwise": {
			args: []string{"--only", "errors"}, refuted: []string{"none-fits", "none-fits-said"}, also: []string{"errors-in-answer"},
			world: func(w *world) {
				w.gap.AnswerUnmatched()
				w.proxy.Wrap("ec2", "CreateFleet", without("UnfulfillableCapacity"))
			},
		},
		"CreateFleet is throttled": {
			args: []string{"--only", "rate"}, refuted: []string{"rate-one", "rate-two"},
			world: func(w *world) {
				w.proxy.Inject(awstest.Fault{Service: "ec2", Operation: "CreateFleet", From: 4, Kind: awstest.Throttle})
			},
		},
		"a machine with a key ends": {
			args: []string{"--only", "keys", "--kms-key-id", key}, refuted: []string{"key-lives"},
			world: func(w *world) { w.gap.EndNew("Client.InvalidKMSKey.InvalidState", "The KMS key is disabled") },
		},
		"tables are made one at a time": {
			args: []string{"--only", "tables"}, refuted: []string{"tables-at-once"}, also: []string{"tables-made"},
			world: func(w *world) { w.proxy.Wrap("dynamodb", "CreateTable", refusedOnce("LimitExceededException")) },
		},
		"hosts may do everything": {
			args: []string{"--only", "host"}, refuted: []string{"host-other-rows", "host-other-end", "host-nothing-else"}, also: []string{"host-own-rows", "host-own-end"},
			world: func(w *world) { w.set(func() { w.rights = "all" }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.world(w)
			if code := w.run(append(c.args, "--yes", "--output", "json")...); code != findings.ExitRefuted {
				t.Errorf("exit code %d", code)
			}
			got := w.verdicts()
			for name, verdict := range got {
				if (verdict == findings.Refuted) != slices.Contains(c.refuted, name) {
					t.Errorf("%s is %s", name, verdict)
				}
			}
			for _, name := range c.also {
				if got[name] != findings.Confirmed {
					t.Errorf("%s is %s", name, got[name])
				}
			}
			if t.Failed() {
				t.Log(w.stderr.String())
			}
			w.clean()
		})
	}
}

// TestAnsweredCallOfNoPools has EC2 answer a call that no type meets, which controld knows too. In the other tests EC2 refuses it.
func TestAnsweredCallOfNoPools(t *testing.T) {
	w := newWorld(t)
	w.gap.AnswerUnmatched()
	code := w.run("--yes", "--only", "errors", "--output", "json")
	got := w.verdicts()
	if code != 0 || got["none-fits"] != findings.Confirmed || got["none-fits-said"] != findings.Confirmed {
		t.Errorf("exit code %d, %v\n%s", code, got, &w.stderr)
	}
	w.clean()
}

// TestRequirementsThatOverlap has EC2 refuse every launch in several zones, so that there is no machine to look at.
func TestRequirementsThatOverlap(t *testing.T) {
	w := newWorld(t)
	w.proxy.Handle("ec2", "CreateFleet", overlaps)
	code := w.run("--yes", "--only", "launch", "--output", "json")
	got := w.verdicts()
	if code == 0 || got["same-requirements"] != findings.Refuted || got["machine-tags"] != findings.Undecided {
		t.Errorf("exit code %d, %v\n%s", code, got, &w.stderr)
	}
	w.clean()
}

// TestArchitecturesThatOverlap has EC2 refuse the launch by two templates alone.
func TestArchitecturesThatOverlap(t *testing.T) {
	w := newWorld(t)
	w.proxy.Wrap("ec2", "CreateFleet", func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if form, err := awstest.Form(r); err == nil && form.Has("LaunchTemplateConfigs.2.LaunchTemplateSpecification.Version") {
				overlaps(rw, r, forward)
				return
			}
			next(rw, r, forward)
		}
	})
	code := w.run("--yes", "--only", "launch,architectures", "--output", "json")
	got := w.verdicts()
	if code != findings.ExitRefuted || got["both-requirements"] != findings.Refuted || got["same-requirements"] != findings.Confirmed {
		t.Errorf("exit code %d, %v\n%s", code, got, &w.stderr)
	}
	w.clean()
}

// TestArchitecturesOverlapBesideAMachine: EC2 may refuse one offering and launch a machine by another. The machine ends with the check.
func TestArchitecturesOverlapBesideAMachine(t *testing.T) {
	w := newWorld(t)
	w.proxy.Wrap("ec2", "CreateFleet", func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			form, err := awstest.Form(r)
			if err != nil || !form.Has("LaunchTemplateConfigs.2.LaunchTemplateSpecification.Version") {
				next(rw, r, forward)
				return
			}
			answer := httptest.NewRecorder()
			next(answer, r, forward)
			const refused = "<item><errorCode>InvalidParameterValue</errorCode><errorMessage>" + overlapping + "</errorMessage></item></errorSet>"
			body := bytes.Replace(answer.Body.Bytes(), []byte("</errorSet>"), []byte(refused), 1)
			(&awstest.Answer{Status: answer.Code, Header: answer.Header(), Body: body}).Write(rw)
		}
	})
	code := w.run("--yes", "--only", "launch,architectures", "--output", "json")
	if got := w.verdicts(); code != findings.ExitRefuted || got["both-requirements"] != findings.Refuted {
		t.Errorf("exit code %d, %v\n%s", code, got, &w.stderr)
	}
	var ended []int
	for _, c := range w.proxy.Calls() {
		if form, err := url.ParseQuery(string(c.Body)); err == nil && c.Operation == "TerminateInstances" {
			n := 0
			for name := range form {
				if strings.HasPrefix(name, "InstanceId.") {
					n++
				}
			}
			ended = append(ended, n)
		}
	}
	if len(ended) < 2 || ended[0] != 1 {
		t.Errorf("machines were ended together at the end: %v in a call", ended)
	}
	w.clean()
}

// overlapping is what EC2 said in runs-on/runs-on#476.
const overlapping = "Two or more of your InstanceRequirements structures include overlapping values. Ensure that there is no overlap, and try again."

// overlaps refuses a launch as in runs-on/runs-on#476.
func overlaps(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
	awstest.Fail(rw, r, http.StatusBadRequest, "InvalidParameterValue", overlapping)
}

// refusesTemplate refuses launches from the launch templates with an ending.
func refusesTemplate(ending string) func(awstest.Hook) awstest.Hook {
	return func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if form, err := awstest.Form(r); err == nil && strings.HasSuffix(form.Get("LaunchTemplate.LaunchTemplateName"), ending) {
				awstest.Fail(rw, r, http.StatusForbidden, "UnauthorizedOperation", "by the test")
				return
			}
			next(rw, r, forward)
		}
	}
}

// fails is a hook that refuses every call.
func fails(status int, code string) awstest.Hook {
	return func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, status, code, "by the test")
	}
}

// dryRun lets a hook answer calls with DryRun.
func dryRun(hook awstest.Hook) func(awstest.Hook) awstest.Hook {
	return func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if form, err := awstest.Form(r); err == nil && form.Get("DryRun") == "true" {
				hook(rw, r, forward)
				return
			}
			next(rw, r, forward)
		}
	}
}

// without gives another name to something in an answer.
func without(name string) func(awstest.Hook) awstest.Hook {
	return func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			answer := httptest.NewRecorder()
			next(answer, r, forward)
			body := bytes.ReplaceAll(answer.Body.Bytes(), []byte(name), []byte("other"))
			(&awstest.Answer{Status: answer.Code, Header: answer.Header(), Body: body}).Write(rw)
		}
	}
}

// otherTokens gives each call a token of its own.
func otherTokens(next awstest.Hook) awstest.Hook {
	var n atomic.Int64
	return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err == nil {
			form.Set("ClientToken", fmt.Sprintf("%s/%d", form.Get("ClientToken"), n.Add(1)))
			r = awstest.WithForm(r, form)
		}
		next(rw, r, forward)
	}
}

// refusedOnce refuses the first call of each of a hook.
func refusedOnce(code string) func(awstest.Hook) awstest.Hook {
	return func(next awstest.Hook) awstest.Hook {
		var n atomic.Int64
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if n.Add(1) == 1 {
				awstest.Fail(rw, r, http.StatusBadRequest, code, "by the test")
				return
			}
			next(rw, r, forward)
		}
	}
}

// refusedAtFirst refuses the first calls of a hook, as AWS does while a role is new.
func refusedAtFirst(status int, code string) func(awstest.Hook) awstest.Hook {
	return func(next awstest.Hook) awstest.Hook {
		var n atomic.Int64
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if n.Add(1) <= 2 {
				awstest.Fail(rw, r, status, code, "by the test")
				return
			}
			next(rw, r, forward)
		}
	}
}

// TestNewRoles has AWS learn of the roles late: what it refuses until then decides nothing.
func TestNewRoles(t *testing.T) {
	w := newWorld(t)
	w.proxy.Wrap("sts", "AssumeRole", refusedAtFirst(http.StatusForbidden, "AccessDenied"))
	w.proxy.Wrap("dynamodb", "DescribeTable", refusedAtFirst(http.StatusBadRequest, "AccessDeniedException"))
	w.proxy.Wrap("sqs", "GetQueueUrl", refusedAtFirst(http.StatusForbidden, "AccessDenied"))
	w.proxy.Wrap("ec2", "CreateLaunchTemplate", refusedAtFirst(http.StatusForbidden, "UnauthorizedOperation"))
	w.proxy.Wrap("ec2", "CreateFleet", refusedAtFirst(http.StatusForbidden, "UnauthorizedOperation"))
	code := w.run("--yes", "--output", "json", "--settle", "30s", "--only", "tables,queues,policy,end")
	for name, verdict := range w.verdicts() {
		if verdict != findings.Confirmed {
			t.Errorf("%s is %s", name, verdict)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d\n%s", code, &w.stderr)
	}
	w.clean()
}

// TestInterrupt ends a run by SIGINT while a launch is made, which EC2 shows only later.
func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	w.gap.HideNew()
	var interrupted atomic.Bool
	var looks atomic.Int64
	w.proxy.Wrap("ec2", "DescribeInstances", func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if interrupted.Load() && looks.Add(1) == 5 {
				w.gap.Show()
			}
			next(rw, r, forward)
		}
	})
	cmd := make(chan *exec.Cmd, 1)
	var once sync.Once
	w.proxy.Wrap("ec2", "CreateFleet", func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			next(rw, r, forward) // it is launched, and its answer is lost
			once.Do(func() {
				interrupted.Store(true)
				if err := (<-cmd).Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
			})
			<-r.Context().Done()
		}
	})
	started := w.start("--yes", "--output", "json", "--only", "policy,launch", "--settle", "5s")
	cmd <- started
	if code := w.wait(started); code != findings.ExitFailed || !strings.Contains(w.stderr.String(), "first-account: it was interrupted") {
		t.Errorf("exit code %d\n%s", code, &w.stderr)
	}
	if got := w.verdicts(); got["template-allowed"] != findings.Confirmed || got["launch-allowed"] != findings.Undecided || got["shown-soon"] != findings.Undecided {
		t.Errorf("%v\n%s", got, &w.stderr)
	}
	if n := looks.Load(); n < 5 {
		t.Errorf("%d looks: the machine was never shown", n)
	}
	w.clean()
}

// TestFailures has a call fail in the middle: what was made until then is removed.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		service, operation string
		want               string // in the error
	}{
		"the profile is not made":       {"iam", "CreateInstanceProfile", "make instance profile first-account-"},
		"the role is not assumed":       {"sts", "AssumeRole", "assume role first-account-"},
		"a template is not made":        {"ec2", "CreateLaunchTemplate", "check launch: "},
		"interfaces are not shown":      {"ec2", "DescribeNetworkInterfaces", "check launch: look for network interfaces"},
		"the machine cannot be watched": {"ec2", "DescribeInstanceStatus", "check boot: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.Inject(awstest.Fault{Service: c.service, Operation: c.operation, From: 1, Kind: awstest.InternalError})
			code := w.run("--yes", "--only", "launch,boot")
			if code != findings.ExitFailed || !strings.Contains(w.stderr.String(), c.want) {
				t.Errorf("exit code %d, want %s\n%s", code, c.want, &w.stderr)
			}
			w.clean()
		})
	}
}

// TestLeftOver has the removal fail: the error names what is left, the next run makes nothing, and --clean removes it.
func TestLeftOver(t *testing.T) {
	w := newWorld(t)
	var may atomic.Bool
	w.proxy.Wrap("iam", "DeleteRole", func(next awstest.Hook) awstest.Hook {
		return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if may.Load() {
				next(rw, r, forward)
			} else {
				awstest.Fail(rw, r, http.StatusForbidden, "AccessDenied", "by the test")
			}
		}
	})
	code := w.run("--yes", "--only", "errors")
	if want := "left in the account: roles first-account-"; code != findings.ExitFailed || !strings.Contains(w.stderr.String(), want) {
		t.Errorf("exit code %d, want %s\n%s", code, want, &w.stderr)
	}
	may.Store(true)
	before := w.left()
	for _, mode := range []string{"--yes", "--plan"} {
		code = w.run(mode)
		if want := "another run is at work or has left something: roles first-account-"; code != findings.ExitFailed || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%s: exit code %d, want %s\n%s", mode, code, want, &w.stderr)
		}
	}
	if d := cmp.Diff(before, w.left()); d != "" || len(before) != 2 {
		t.Errorf("a refused run has changed something (-want +got):\n%s", d)
	}
	if code := w.run("--clean"); code != 0 {
		t.Errorf("exit code %d\n%s", code, &w.stderr)
	}
	w.clean()
}

// TestPlan makes nothing.
func TestPlan(t *testing.T) {
	w := newWorld(t)
	for mode, want := range map[string]int{"--plan": 0, "": findings.ExitFailed} {
		code := w.run(strings.Fields(mode)...)
		if said := w.stdout.String() + w.stderr.String(); code != want || !strings.Contains(said, "costs less than") || !strings.Contains(said, "  policy        ") ||
			!strings.Contains(said, "  machines  four or five, of the types t4g.small, t4g.medium, m7g.large, t3a.small") ||
			!strings.Contains(said, w.image+" (") || !strings.Contains(said, w.x86+" (") {
			t.Errorf("%q: exit code %d\n%s", mode, code, said)
		}
	}
	for _, c := range w.proxy.Calls() {
		if !strings.HasPrefix(c.Operation, "Describe") && !strings.HasPrefix(c.Operation, "List") && !strings.HasPrefix(c.Operation, "Get") {
			t.Errorf("%s was called", c.Call)
		}
	}
}

// TestOwnImage measures the boot of an image that has agentd, and launches a machine with a key.
func TestOwnImage(t *testing.T) {
	w := newWorld(t)
	w.set(func() {
		w.boots = "[    9.1] systemd[1]: Started agentd.service\r\n[    9.3] agentd[512]: 2026-11-24 [INFO]  on EC2\r\n"
	})
	code := w.run("--yes", "--output", "json", "--only", "boot,keys", "--image", w.image, "--kms-key-id", key)
	want := map[string]findings.Verdict{
		"boot-in-time": findings.Confirmed, "boot-not-impaired": findings.Confirmed, "boot-agent": findings.Confirmed, "key-lives": findings.Confirmed,
	}
	if d := cmp.Diff(want, w.verdicts()); d != "" || code != 0 {
		t.Errorf("exit code %d (-want +got):\n%s\n%s", code, d, &w.stderr)
	}
	if !strings.Contains(w.stdout.String(), "agentd[512]: 2026-11-24 [INFO]  on EC2") {
		t.Error(w.stdout.String())
	}
	w.clean()
}

// TestLimits has a check and all checks take too long.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a machine that writes nothing": {[]string{"--only", "host", "--boot", "300ms"}, "check host: machine i-"},
		"all checks":                    {[]string{"--only", "boot", "--image", "AMI", "--limit", "2s"}, "the checks took longer than 2.00 s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(func() { w.boots = "some lines of the kernel" })
			for i, arg := range c.args {
				if arg == "AMI" {
					c.args[i] = w.image
				}
			}
			if code := w.run(append(c.args, "--yes")...); code != findings.ExitFailed || !strings.Contains(w.stderr.String(), c.want) {
				t.Errorf("exit code %d, want %s\n%s", code, c.want, &w.stderr)
			}
			w.clean()
		})
	}
}
