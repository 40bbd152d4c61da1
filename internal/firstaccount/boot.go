package firstaccount

import (
	"context"
	"encoding/base64"
	"regexp"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
)

// bootLimit is half of the default creation timeout, in which a host must boot and register.
const bootLimit = 5 * time.Minute

var bootCheck = check{
	name: "boot",
	does: "waits until the machine runs, passes EC2's checks and, with --image, says something on its console",
	assumptions: []findings.Assumption{
		{
			Name: "boot-in-time", Text: "A machine passes EC2's checks within five minutes of its launch.",
			ReliedOn: "internal/config/default.go: the creation timeout; docs/performance.md: the times of cold starts",
		},
		{
			Name: "boot-not-impaired", Text: "While it boots, EC2's checks do not say that it is impaired.",
			ReliedOn: "internal/compute/ec2/describe.go: findImpaired",
		},
		{
			Name: "boot-agent", Text: "agentd's first line is on the console of a machine with its image within five minutes.",
			ReliedOn: "systemd/agentd.service: StandardOutput; internal/config/default.go: the creation timeout",
		},
	},
	run: checkBoot,
}

func checkBoot(ctx context.Context, s *session) error {
	l, err := s.theMachine(ctx)
	if err != nil {
		return err
	}
	w := watch{s: s, launch: l, agent: s.Image == ""}
	if _, _, err := s.await(ctx, s.Times.Boot, "the machine to boot", func() (bool, error) { return w.look(ctx) }); err != nil {
		return err
	}
	s.Decide("boot-in-time", w.ok > 0 && w.ok <= bootLimit, "it ran %s after the call, and passed EC2's checks %s after it", bootAfter(w.running), bootAfter(w.ok))
	s.Decide("boot-not-impaired", len(w.odd) == 0, "the checks said: %s", listed(w.said))
	if s.Image == "" {
		s.Leave("boot-agent", "it needs --image with an image that has agentd")
		return nil
	}
	s.Decide("boot-agent", w.lineAt > 0 && w.lineAt <= bootLimit, "%s after the call: %.160s", bootAfter(w.lineAt), w.line)
	return nil
}

func bootAfter(d time.Duration) string {
	if d == 0 {
		return "not at all"
	}
	return findings.Seconds(d)
}

// watch is what was seen of a machine that boots. The times are those since the call.
type watch struct {
	s      *session
	launch *launch

	running, ok time.Duration
	said, odd   []string // by EC2's checks
	agent       bool     // was heard, or is not waited for
	lineAt      time.Duration
	line        string
}

// look reports whether there is nothing more to wait for.
func (w *watch) look(ctx context.Context) (bool, error) {
	now := func() time.Duration { return time.Since(w.launch.call.begun) }
	out, err := w.s.admin.ec2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{
		IncludeAllInstances: sdk.Bool(true), Filters: []types.Filter{{Name: str("instance-state-name"), Values: []string{"pending", "running"}}},
		InstanceIds: []string{w.launch.InstanceID},
	})
	switch {
	case aws.ClassOf(err) == aws.Gone:
		return false, nil // EC2 does not show it yet
	case err != nil:
		return false, aws.Wrap("look at the checks of the machine", err)
	}
	for _, status := range out.InstanceStatuses {
		if status.InstanceState != nil && status.InstanceState.Name == types.InstanceStateNameRunning && w.running == 0 {
			w.running = now()
		}
		if status.SystemStatus == nil || status.InstanceStatus == nil {
			continue
		}
		answer := string(status.SystemStatus.Status) + "/" + string(status.InstanceStatus.Status)
		w.said = append(w.said, newIDs(w.said, []string{answer})...)
		if status.SystemStatus.Status == types.SummaryStatusImpaired || status.InstanceStatus.Status == types.SummaryStatusImpaired {
			w.odd = append(w.odd, answer)
		}
		if answer == "ok/ok" && w.ok == 0 {
			w.ok = now()
		}
	}
	if !w.agent {
		text, err := w.s.console(ctx, w.launch.InstanceID)
		if err != nil {
			return false, err
		}
		if line := agentLine.FindString(text); line != "" {
			w.agent, w.line, w.lineAt = true, line, now()
		}
	}
	return w.ok > 0 && w.agent, nil
}

// agentLine is one that the journal has forwarded from agentd.
var agentLine = regexp.MustCompile(`agentd(\[\d+\])?: [^\r\n]*`)

// console is what a machine has written to its console so far.
func (s *session) console(ctx context.Context, id string) (string, error) {
	out, err := s.admin.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id, Latest: sdk.Bool(true)})
	if aws.Code(err) == "UnsupportedOperation" { // the machine is not on Nitro, or has ended
		out, err = s.admin.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id})
	}
	switch {
	case aws.ClassOf(err) == aws.Gone:
		return "", nil // EC2 does not show it yet
	case err != nil:
		return "", aws.Wrap("read the console of "+id, err)
	}
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(out.Output))
	if err != nil {
		return "", aws.Wrap("read the console of "+id, err)
	}
	return string(text), nil
}
