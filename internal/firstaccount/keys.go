package firstaccount

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var keysCheck = check{
	name: "keys",
	does: "launches a machine whose volume has the key of --kms-key-id",
	without: func(o Options) string {
		if o.KMSKeyID == "" {
			return "it needs --kms-key-id"
		}
		return ""
	},
	assumptions: []findings.Assumption{{
		Name: "key-lives", Text: "The statements about keys in the policy of controld are enough: a machine with such a volume starts.",
		ReliedOn: "internal/aws/policy.go: OnVolumeKeys and OnVolumeGrants; docs/iam/README.md",
	}},
	run: checkKeys,
}

func checkKeys(ctx context.Context, s *session) error {
	l, err := s.launchFrom(ctx, poolKey)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil && l != nil && (denied(l.call) || strings.Contains(listed(l.call.codes()), "KMS")):
		s.Decide("key-lives", false, "the launch was refused: %s", listed(l.call.messages()))
		return nil
	case err != nil:
		return err
	}
	var m lifecycle.Machine
	if _, err := s.must(ctx, s.Times.Boot, "the machine to run or to end", func() (bool, error) {
		list, err := s.fleet.Describe(ctx, []string{l.InstanceID})
		if err == nil {
			m = list[0]
		}
		return err == nil && m.State != lifecycle.MachinePending, err
	}); err != nil {
		return err
	}
	if m.State != lifecycle.MachineRunning {
		s.Decide("key-lives", false, "the machine ended: %s", m.EndReason)
		return nil
	}
	out, err := s.admin.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: str("attachment.instance-id"), Values: []string{l.InstanceID}}}})
	if err != nil {
		return aws.Wrap("look for volumes", err)
	}
	var keys []string
	for _, v := range out.Volumes {
		keys = append(keys, sdk.ToString(v.KmsKeyId))
	}
	id := s.KMSKeyID[strings.LastIndex(s.KMSKeyID, "/")+1:]
	isAlias := strings.Contains(s.KMSKeyID, "alias/")
	// An image may have volumes beside that of the root, with other keys.
	encrypted := slices.ContainsFunc(keys, func(key string) bool { return key != "" && (isAlias || strings.HasSuffix(key, id)) })
	s.Decide("key-lives", encrypted, "it runs, and its volumes have the keys %q", keys)
	return s.fleet.Terminate(ctx, []string{l.InstanceID})
}
