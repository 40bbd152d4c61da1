package firstaccount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/remuda-ci/remuda/internal/aws"
)

// remains are the names of what a run has made and what is still there.
type remains struct{ machines, volumes, templates, tables, queues, profiles, roles []string }

func (r remains) empty() bool {
	return len(r.machines)+len(r.volumes)+len(r.templates)+len(r.tables)+len(r.queues)+len(r.profiles)+len(r.roles) == 0
}

func (r remains) String() string {
	var parts []string
	for _, part := range []struct {
		kind  string
		names []string
	}{
		{"machines", r.machines}, {"volumes", r.volumes}, {"launch templates", r.templates}, {"tables", r.tables}, {"queues", r.queues}, {"instance profiles", r.profiles}, {"roles", r.roles},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.kind+" "+listed(part.names))
		}
	}
	return strings.Join(parts, "; ")
}

// find looks for what was made under names that begin with prefix. A machine that ends is no longer there.
func (s *session) find(ctx context.Context, prefix string) (r remains, err error) {
	for _, look := range []func(context.Context, string, *remains) error{s.findMachines, s.findVolumes, s.findTemplates, s.findTables, s.findQueues, s.findProfiles, s.findRoles} {
		if err := look(ctx, prefix, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// tagged is a filter for the tag of runs.
func tagged(prefix string) types.Filter {
	return types.Filter{Name: str("tag:" + tagFleet), Values: []string{prefix + "*"}}
}

func (s *session) findMachines(ctx context.Context, prefix string, r *remains) error {
	living, err := s.instances(ctx, tagged(prefix), types.Filter{Name: str("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}})
	if err != nil {
		return err
	}
	for _, i := range living {
		r.machines = append(r.machines, sdk.ToString(i.InstanceId))
	}
	if prefix != s.id || len(s.ids) == 0 {
		return nil
	}
	// A machine of this run that EC2 does not show yet may live.
	shown, err := s.instances(ctx, types.Filter{Name: str("instance-id"), Values: s.ids})
	if err != nil {
		return err
	}
	for _, id := range s.ids {
		known := func(i types.Instance) bool { return sdk.ToString(i.InstanceId) == id }
		if !slices.ContainsFunc(shown, known) {
			r.machines = append(r.machines, id)
		}
	}
	return nil
}

// instances are those that EC2 shows to the administrator.
func (s *session) instances(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	var all []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(s.admin.ec2, &ec2.DescribeInstancesInput{Filters: filters})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, aws.Wrap("look for machines", err)
		}
		for _, reservation := range page.Reservations {
			all = append(all, reservation.Instances...)
		}
	}
	return all, nil
}

// findVolumes looks for those without a machine. All are made such that they go with theirs.
func (s *session) findVolumes(ctx context.Context, prefix string, r *remains) error {
	pages := ec2.NewDescribeVolumesPaginator(s.admin.ec2, &ec2.DescribeVolumesInput{Filters: []types.Filter{
		tagged(prefix), {Name: str("status"), Values: []string{"available"}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for volumes", err)
		}
		for _, v := range page.Volumes {
			r.volumes = append(r.volumes, sdk.ToString(v.VolumeId))
		}
	}
	return nil
}

func (s *session) findTemplates(ctx context.Context, prefix string, r *remains) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(s.admin.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{tagged(prefix)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for launch templates", err)
		}
		for _, t := range page.LaunchTemplates {
			r.templates = append(r.templates, sdk.ToString(t.LaunchTemplateName))
		}
	}
	return nil
}

func (s *session) findTables(ctx context.Context, prefix string, r *remains) error {
	pages := dynamodb.NewListTablesPaginator(s.admin.dynamo, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for tables", err)
		}
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, prefix+"-") {
				r.tables = append(r.tables, name)
			}
		}
	}
	return nil
}

func (s *session) findProfiles(ctx context.Context, prefix string, r *remains) error {
	pages := iam.NewListInstanceProfilesPaginator(s.admin.iam, &iam.ListInstanceProfilesInput{PathPrefix: str(rolePath)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for instance profiles", err)
		}
		for _, p := range page.InstanceProfiles {
			if name := sdk.ToString(p.InstanceProfileName); strings.HasPrefix(name, prefix+"-") {
				r.profiles = append(r.profiles, name)
			}
		}
	}
	return nil
}

func (s *session) findRoles(ctx context.Context, prefix string, r *remains) error {
	pages := iam.NewListRolesPaginator(s.admin.iam, &iam.ListRolesInput{PathPrefix: str(rolePath)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aws.Wrap("look for roles", err)
		}
		for _, role := range page.Roles {
			if name := sdk.ToString(role.RoleName); strings.HasPrefix(name, prefix+"-") {
				r.roles = append(r.roles, name)
			}
		}
	}
	return nil
}

// cleanUp removes everything that was made, in a time of its own. What is left is in its error.
func (s *session) cleanUp(ctx context.Context) error {
	var unshown time.Duration
	if ctx.Err() != nil && s.templated { // a launch may have been made whose answer was not awaited
		unshown = s.Times.Settle
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Times.Clean)
	defer cancel()
	s.Begin("clean up")
	return s.remove(ctx, s.id, unshown)
}

// Clean removes what runs have left, whichever they were.
func Clean(ctx context.Context, o Options) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Times.Clean)
	defer cancel()
	s.Begin("clean up")
	return s.remove(ctx, everyRun, 0)
}

// remove ends and deletes what is named with prefix, until two looks in a row find nothing: the first may come before AWS shows what it has made.
// It goes on looking for as long as there may be something that AWS does not show.
func (s *session) remove(ctx context.Context, prefix string, unshown time.Duration) error {
	begun := time.Now()
	var left remains
	var failed error
	empty := 0
	_, gone, err := s.await(ctx, s.Times.Clean, "the removal", func() (bool, error) {
		found, err := s.find(ctx, prefix)
		if err != nil {
			if failed = err; aws.ClassOf(err) == aws.Denied {
				return false, err
			}
			return false, ctx.Err()
		}
		before := left.String()
		if left = found; left.empty() {
			empty++
			return empty >= 2 && time.Since(begun) >= unshown, nil
		}
		empty = 0
		if left.String() == before && aws.ClassOf(failed) == aws.Denied {
			return false, failed // it will not be allowed later
		}
		s.Say("removing %s", left)
		failed = s.removeOnce(ctx, left)
		return false, ctx.Err()
	})
	switch {
	case gone:
		s.Say("nothing is left")
		return nil
	case failed == nil:
		failed = cmp.Or(err, errors.New("it takes longer"))
	}
	if left.empty() {
		return fmt.Errorf("what is named %s-… may be left: try --clean: %w", prefix, failed)
	}
	return fmt.Errorf("left in the account: %s: try --clean: %w", left, failed)
}

// removeOnce does the next step of each removal. A step that cannot be done yet is done by a later call.
func (s *session) removeOnce(ctx context.Context, r remains) error {
	errs := []error{s.endMachines(ctx, r.machines)}
	for _, id := range r.volumes {
		_, err := s.admin.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
		errs = append(errs, unlessGone("delete volume "+id, err))
	}
	for _, name := range r.templates {
		_, err := s.admin.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &name})
		errs = append(errs, unlessGone("delete launch template "+name, err))
	}
	for _, name := range r.tables {
		errs = append(errs, s.removeTable(ctx, name))
	}
	errs = append(errs, s.removeQueues(ctx, r.queues))
	for _, name := range r.profiles {
		errs = append(errs, s.removeProfile(ctx, name))
	}
	for _, name := range r.roles {
		errs = append(errs, s.removeRole(ctx, name))
	}
	return errors.Join(errs...)
}

func unlessGone(what string, err error) error {
	if err == nil || aws.ClassOf(err) == aws.Gone {
		return nil
	}
	return aws.Wrap(what, err)
}

// endMachines ends each by a call of its own: one that EC2 does not know yet would fail the call for all.
func (s *session) endMachines(ctx context.Context, ids []string) error {
	var errs []error
	for _, id := range ids {
		_, err := s.admin.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		errs = append(errs, unlessGone("end machine "+id, err))
	}
	return errors.Join(errs...)
}

// removeTable takes the protection of a table back, and then deletes it.
func (s *session) removeTable(ctx context.Context, name string) error {
	out, err := s.admin.dynamo.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	switch {
	case err != nil:
		return unlessGone("describe table "+name, err)
	case out.Table.TableStatus != dynamotypes.TableStatusActive:
		return nil // it is being made, changed or deleted
	case sdk.ToBool(out.Table.DeletionProtectionEnabled):
		_, err := s.admin.dynamo.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: sdk.Bool(false)})
		if err != nil {
			return unlessGone("take the protection of table "+name, err)
		}
	}
	_, err = s.admin.dynamo.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
	return unlessGone("delete table "+name, err)
}

func (s *session) removeProfile(ctx context.Context, name string) error {
	out, err := s.admin.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return unlessGone("look at instance profile "+name, err)
	}
	for _, role := range out.InstanceProfile.Roles {
		_, err := s.admin.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: role.RoleName})
		if err != nil {
			return unlessGone("take the role of instance profile "+name, err)
		}
	}
	_, err = s.admin.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	return unlessGone("delete instance profile "+name, err)
}

func (s *session) removeRole(ctx context.Context, name string) error {
	policies, err := s.admin.iam.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &name})
	if err != nil {
		return unlessGone("look at role "+name, err)
	}
	for _, policy := range policies.PolicyNames {
		_, err := s.admin.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &policy})
		if err != nil {
			return unlessGone("delete a policy of role "+name, err)
		}
	}
	_, err = s.admin.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name})
	return unlessGone("delete role "+name, err)
}
