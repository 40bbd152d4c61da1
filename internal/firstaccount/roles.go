package firstaccount

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/permissions"
)

// tagFleet is on all that is made and takes tags, with the name of the run, as on all that a fleet makes.
const tagFleet = ec2.TagFleet

// rolePath is that of all roles and profiles, so that they are found by it.
const rolePath = "/" + everyRun + "/"

func (s *session) controldRole() string { return s.id + "-controld" }
func (s *session) hostRole() string     { return s.id + "-host" }

// setUp makes the roles with the policies that `controld iam` prints.
func (s *session) setUp(ctx context.Context) error {
	s.Begin("set up")
	s.Say("everything made is named %s; making its roles", s.id)
	s.made = time.Now()
	names := aws.Names{
		Region: s.AWS.Region, Account: s.account, Prefix: s.id,
		HostRole: strings.TrimPrefix(rolePath, "/") + s.hostRole(), HostProfile: strings.TrimPrefix(rolePath, "/") + s.hostRole(),
	}
	if s.KMSKeyID != "" && !strings.HasSuffix(s.KMSKeyID, "alias/aws/ebs") {
		names.VolumeKeys = []string{s.KMSKeyID}
	}
	me := fmt.Sprintf("arn:%s:iam::%s:root", s.partition, s.account)
	if _, err := s.makeRole(ctx, s.controldRole(), trust("AWS", me), names, aws.RoleControld, aws.RoleRefresh); err != nil {
		return err
	}
	service := "ec2.amazonaws.com"
	if s.partition == "aws-cn" {
		service += ".cn"
	}
	roleID, err := s.makeRole(ctx, s.hostRole(), trust("Service", service), names, aws.RoleHost)
	if err != nil {
		return err
	}
	s.roleID = roleID
	if err := s.makeProfile(ctx); err != nil {
		return err
	}
	s.fleet, err = s.assume(ctx, nil)
	return err
}

// trust is the policy of who may assume a role.
func trust(kind, principal string) map[string]any {
	return map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]string{kind: principal}, "Action": "sts:AssumeRole",
	}}}
}

func (s *session) tags() []iamtypes.Tag { return []iamtypes.Tag{{Key: str(tagFleet), Value: &s.id}} }

// makeRole makes a role with the policies of the given ones, and returns its id.
func (s *session) makeRole(ctx context.Context, name string, trust map[string]any, names aws.Names, roles ...aws.Role) (string, error) {
	document, err := json.Marshal(trust)
	if err != nil {
		return "", err
	}
	made, err := s.admin.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &name, Path: str(rolePath), AssumeRolePolicyDocument: str(string(document)), Tags: s.tags(),
		Description: str("made by first-account of Remuda, which removes it at its end"),
	})
	if err != nil {
		return "", aws.Wrap("make role "+name, err)
	}
	for _, role := range roles {
		text, err := aws.Policy(role, permissions.Needed(permissions.Uses{}), names).JSON()
		if err != nil {
			return "", err
		}
		if _, err := s.admin.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: str(string(role)), PolicyDocument: &text}); err != nil {
			return "", aws.Wrap("give role "+name+" its policy", err)
		}
	}
	return sdk.ToString(made.Role.RoleId), nil
}

func (s *session) makeProfile(ctx context.Context) error {
	name := s.hostRole()
	_, err := s.admin.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: str(rolePath), Tags: s.tags()})
	if err != nil {
		return aws.Wrap("make instance profile "+name, err)
	}
	_, err = s.admin.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &name})
	if err != nil {
		return aws.Wrap("give instance profile "+name+" its role", err)
	}
	return nil
}

// assume returns a fleet with the role of controld. Of what the role may do the session may not do the denied actions.
func (s *session) assume(ctx context.Context, denied []string) (*fleet, error) {
	role := fmt.Sprintf("arn:%s:iam::%s:role%s%s", s.partition, s.account, rolePath, s.controldRole())
	in := &sts.AssumeRoleInput{RoleArn: &role, RoleSessionName: str(everyRun)}
	if len(denied) > 0 {
		text, err := json.Marshal(aws.Document{Version: "2012-10-17", Statement: []aws.Statement{
			{Sid: "Role", Effect: "Allow", Action: []string{"*"}, Resource: []string{"*"}},
			{Sid: "Less", Effect: "Deny", Action: denied, Resource: []string{"*"}},
		}})
		if err != nil {
			return nil, err
		}
		in.Policy = str(string(text))
	}
	var out *sts.AssumeRoleOutput
	_, err := s.must(ctx, s.Times.Settle, "the new role of controld", func() (came bool, err error) {
		out, err = s.admin.sts.AssumeRole(ctx, in)
		if aws.ClassOf(err) == aws.Denied && !s.settled() {
			return false, nil // STS does not know it yet
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("assume role %s: %w", s.controldRole(), err)
	}
	cfg := s.AWS.Copy()
	cfg.Credentials = sdk.NewCredentialsCache(credentials.NewStaticCredentialsProvider(
		sdk.ToString(out.Credentials.AccessKeyId), sdk.ToString(out.Credentials.SecretAccessKey), sdk.ToString(out.Credentials.SessionToken)))
	return s.newFleet(cfg)
}
