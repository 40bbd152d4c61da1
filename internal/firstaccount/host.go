package firstaccount

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
)

const (
	ownRows = "internal/aws/policy.go: ownRows, the rows of a host in the policy of hosts"
	ownEnd  = "internal/aws/policy.go: OnOwn; internal/host/power"
)

var hostCheck = check{
	name: "host",
	does: "launches a machine that tries what its role may do, and ends itself",
	assumptions: []findings.Assumption{
		{
			Name: "host-key", Text: "${aws:userid} of a host is the id of its role, a colon and the id of its machine.",
			ReliedOn: "internal/compute/ec2/machine.go: hostKey; docs/design.md#what-is-stored",
		},
		{Name: "host-metadata-tags", Text: "A host reads the tag of its fleet in the instance metadata.", ReliedOn: "internal/compute/ec2/template.go; internal/host/imds"},
		{Name: "host-own-rows", Text: "A host may read its own record and write its own report.", ReliedOn: ownRows},
		{Name: "host-other-rows", Text: "It may read no other record by any call, and write no other report and no record.", ReliedOn: ownRows},
		{Name: "host-own-end", Text: "It may end its own machine.", ReliedOn: ownEnd},
		{Name: "host-other-end", Text: "It may end no other machine.", ReliedOn: ownEnd},
		{Name: "host-nothing-else", Text: "It may not list the queues.", ReliedOn: "internal/aws/policy.go: the policy of hosts has two tables and its own end"},
		{
			Name: "host-ends-itself", Text: "A host that ends itself by a call is shown with the reason Client.UserInitiatedShutdown.",
			ReliedOn: "internal/host/power; internal/telemetry/metrics.go: the codes of machines that are gone",
		},
	},
	run: checkHost,
}

//go:embed host.sh
var hostScript string

func checkHost(ctx context.Context, s *session) error {
	if s.hostImage.id == "" {
		return fmt.Errorf("there is no image %s of Amazon", amazonLinux(arm64))
	}
	other, err := s.theMachine(ctx)
	if err != nil {
		return err
	}
	if err := s.tables(ctx); err != nil {
		return err
	}
	id, err := s.launchHost(ctx, other.InstanceID)
	if err != nil {
		return err
	}
	said := map[string]string{}
	_, came, err := s.await(ctx, s.Times.Boot, "the machine to try its role", func() (bool, error) {
		text, err := s.console(ctx, id)
		if err == nil {
			said = s.linesOf(text)
		}
		_, ended := said["end"]
		return ended, err
	})
	if err != nil {
		return err
	}
	if !came {
		return fmt.Errorf("machine %s wrote %d answers and no end to its console: its subnet must reach AWS, with a public address or a NAT gateway, and its image needs the AWS CLI", id, len(said))
	}
	s.judge(id, said)
	return s.selfEnd(ctx, id)
}

// launchHost launches a machine by RunInstances from the launch template of the fleet, which CreateFleet cannot do with other user data.
func (s *session) launchHost(ctx context.Context, other string) (string, error) {
	if err := s.templates(ctx); err != nil {
		return "", err
	}
	version, err := s.fleet.Template(ctx, poolHost)
	if err != nil {
		return "", err
	}
	settings := fmt.Sprintf("MARK=%s REGION=%s PREFIX=%s OTHER_KEY=%s OTHER_MACHINE=%s REST=%d\n",
		s.id, s.AWS.Region, s.id, s.roleID+":"+other, other, int(hostRest.Seconds()))
	first, rest, _ := strings.Cut(hostScript, "\n")
	in := s.launchOf(poolHost, version)
	in.UserData, in.ClientToken = str(base64.StdEncoding.EncodeToString([]byte(first+"\n"+settings+rest))), str(s.id+"-"+poolHost)
	out, err := service.NewFromConfig(s.fleet.cfg).RunInstances(ctx, in)
	if err != nil {
		return "", aws.Wrap("launch a machine that tries its role", err)
	}
	id := sdk.ToString(out.Instances[0].InstanceId)
	s.ids = append(s.ids, id)
	s.Say("launched %s, which tries its role", id)
	return id, nil
}

// linesOf are the answers on a console, by their names.
func (s *session) linesOf(console string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(console) {
		if _, text, found := strings.Cut(line, s.id+": "); found {
			name, answer, _ := strings.Cut(strings.TrimSpace(text), " ")
			said[name] = answer
		}
	}
	return said
}

// judge decides by the answers on the console.
func (s *session) judge(id string, said map[string]string) {
	want := s.roleID + ":" + id
	s.Decide("host-key", said["user-id"] == want, "it is %s, and %s was expected", said["user-id"], want)
	s.Decide("host-metadata-tags", said["tag"] == s.id, "it read %q", said["tag"])
	s.judgeAll("host-own-rows", said, "ok", "own-record", "own-report")
	s.judgeAll("host-other-rows", said, codeAccessDenied, "other-record", "scan", "batch", "partiql", "write-record", "other-report")
	s.judgeAll("host-own-end", said, codeDryRun, "own-end")
	s.judgeAll("host-other-end", said, codeUnauthorized, "other-end")
	answer := said["queues"]
	s.Decide("host-nothing-else", strings.HasPrefix(answer, "AccessDenied") || strings.HasSuffix(answer, "AccessDenied"), "it was answered %q", answer)
}

// codeAccessDenied is DynamoDB's answer.
const codeAccessDenied = "AccessDeniedException"

// judgeAll holds if each of the tries has the wanted answer.
func (s *session) judgeAll(name string, said map[string]string, want string, tries ...string) {
	var answers []string
	holds := true
	for _, try := range tries {
		holds = holds && said[try] == want
		answers = append(answers, try+": "+said[try])
	}
	s.Decide(name, holds, "%s", listed(answers))
}

// selfEnd waits for the end that the machine gives itself.
func (s *session) selfEnd(ctx context.Context, id string) error {
	code, came, err := s.endCode(ctx, id)
	if err != nil {
		return err
	}
	if !came {
		s.Decide("host-ends-itself", false, "it lived still, %s after its last line", findings.Seconds(s.Times.End))
		return nil
	}
	s.Decide("host-ends-itself", code == codeEnded, "its state reason was %s", code)
	return nil
}

// endCode waits for the end of a machine, and returns the code of its reason.
func (s *session) endCode(ctx context.Context, id string) (code string, came bool, err error) {
	_, came, err = s.await(ctx, s.Times.End, "the end of "+id, func() (bool, error) {
		list, err := s.instances(ctx, types.Filter{Name: str("instance-id"), Values: []string{id}})
		if err != nil || len(list) == 0 || list[0].State == nil {
			return false, err
		}
		if list[0].StateReason != nil {
			code = sdk.ToString(list[0].StateReason.Code)
		}
		return slices.Contains([]types.InstanceStateName{types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated}, list[0].State.Name), nil
	})
	return code, came, err
}
