package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/drift"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// keptVersions is how many of the newest versions of a template are kept. A launch intent
// names the version of its time and lives for half an hour at most, and a template is
// hardly changed ten times in that. EC2 keeps up to 10,000.
const keptVersions = 10

// Ensure makes the launch template of every pool match the configuration, as a new version where it does not,
// and tells what it did, or with dryRun what it would do. What a pool names and what is not there, such as
// its image, is an error; one pool's does not keep the others from being made right.
func (c *Compute) Ensure(ctx context.Context, dryRun bool) ([]resources.Resource, error) {
	var changes []resources.Resource
	var errs []error
	for _, pool := range c.poolNames() {
		e := ensuring{c: c, ctx: ctx, pool: pool, dryRun: dryRun}
		errs = append(errs, e.subnets(), e.templates())
		changes = append(changes, e.changes...)
	}
	return changes, errors.Join(errs...)
}

// ensuring is the work on one pool.
type ensuring struct {
	c       *Compute
	ctx     context.Context
	pool    string
	dryRun  bool
	changes []resources.Resource
}

// change notes a change, and reports whether to make it.
func (e *ensuring) change(t template, change resources.Change, format string, args ...any) bool {
	e.changes = append(e.changes, resources.Resource{
		Kind: "launch-template", Name: t.name, Change: change, Detail: fmt.Sprintf(format, args...),
	})
	return !e.dryRun
}

// subnets looks for those of the pool, and renews what is known of them.
func (e *ensuring) subnets() error {
	places, err := e.c.askPlaces(e.ctx, e.pool)
	if err != nil {
		return err
	}
	var missing []string
	for _, subnet := range e.c.o.Pools[e.pool].Subnets {
		if !slices.ContainsFunc(places, func(p place) bool { return p.subnet == subnet }) {
			missing = append(missing, subnet)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("find the subnets of pool %s: %w: %s: not in this account and region; correct the pool's subnets",
			e.pool, lifecycle.ErrRefused, strings.Join(missing, ", "))
	}
	return nil
}

func (e *ensuring) templates() error {
	var versions []string
	var errs []error
	for _, t := range e.c.templatesOf(e.pool) {
		version, err := e.template(t)
		errs, versions = append(errs, err), append(versions, strconv.FormatInt(version, 10))
	}
	err := errors.Join(errs...)
	if err == nil && !e.dryRun {
		e.c.knowTemplate(e.pool, strings.Join(versions, versionSeparator))
	}
	return err
}

// template makes one right and returns its default version.
func (e *ensuring) template(t template) (int64, error) {
	rootDevice, err := e.image(t)
	if err != nil {
		return 0, err
	}
	want := e.c.data(e.pool, t, rootDevice)
	stored, err := e.versions(t.name, "$Default", "$Latest")
	if aws.ClassOf(err) == aws.Gone {
		version, createErr := e.create(t, want)
		if !errors.Is(createErr, lifecycle.ErrExists) {
			return version, createErr
		}
		// Another replica was faster, or the answer to our first try was lost.
		stored, err = e.versions(t.name, "$Default", "$Latest")
	}
	switch {
	case err != nil:
		return 0, aws.Wrap("read launch template "+t.name, err)
	case len(stored) == 0:
		return 0, fmt.Errorf("read launch template %s: %w: it has no version", t.name, lifecycle.ErrUnavailable)
	}
	version, err := e.correct(t, want, stored)
	if err != nil {
		return 0, err
	}
	return version, e.prune(t, max(version, sdk.ToInt64(latestOf(stored).VersionNumber)))
}

// versions reads some versions of a template, or all.
func (e *ensuring) versions(name string, which ...string) ([]types.LaunchTemplateVersion, error) {
	var all []types.LaunchTemplateVersion
	pages := service.NewDescribeLaunchTemplateVersionsPaginator(e.c.api, &service.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: sdk.String(name), Versions: which, MaxResults: sdk.Int32(200),
	})
	for pages.HasMorePages() {
		if err := await(e.ctx, e.c.pace.reads, 1, "read launch template "+name); err != nil {
			return nil, err
		}
		page, err := pages.NextPage(e.ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.LaunchTemplateVersions...)
	}
	return all, nil
}

func (e *ensuring) create(t template, want *types.RequestLaunchTemplateData) (int64, error) {
	if !e.change(t, resources.Created, "it was missing") {
		return 0, nil
	}
	out, err := paced(e.ctx, e.c.pace.changes, "create launch template "+t.name, e.c.api.CreateLaunchTemplate, &service.CreateLaunchTemplateInput{
		LaunchTemplateName: sdk.String(t.name), LaunchTemplateData: want, VersionDescription: sdk.String(description),
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeLaunchTemplate, Tags: tagList(e.c.poolTags(e.pool)),
		}},
	})
	if err != nil {
		return 0, err
	}
	return sdk.ToInt64(out.LaunchTemplate.DefaultVersionNumber), nil
}

// description of our versions, for people who look at them.
const description = "made by remuda's Refresh from its configuration"

// correct makes the default version right.
func (e *ensuring) correct(t template, want *types.RequestLaunchTemplateData, stored []types.LaunchTemplateVersion) (int64, error) {
	latest := latestOf(stored)
	current := latest
	if i := slices.IndexFunc(stored, func(v types.LaunchTemplateVersion) bool { return sdk.ToBool(v.DefaultVersion) }); i >= 0 {
		current = stored[i]
	}
	number := sdk.ToInt64(current.VersionNumber)
	differs := drift.Between(want, current.LaunchTemplateData)
	if len(differs) == 0 {
		return number, nil
	}
	if len(drift.Between(want, latest.LaunchTemplateData)) == 0 {
		return e.makeDefault(t, latest, number)
	}
	if e.change(t, resources.Updated, "version %d differs from the configuration in %s: a new version replaces it", number, strings.Join(differs, ", ")) {
		return e.createVersion(t, want, latest)
	}
	return number, nil
}

// makeDefault finishes what a crash cut short, or undoes what a person did.
func (e *ensuring) makeDefault(t template, v types.LaunchTemplateVersion, instead int64) (int64, error) {
	number := sdk.ToInt64(v.VersionNumber)
	if e.change(t, resources.Updated, "version %d is right and was not the default, which was %d", number, instead) {
		return number, e.setDefault(t, number)
	}
	return instead, nil
}

func (e *ensuring) setDefault(t template, number int64) error {
	what := "set the default version of launch template " + t.name
	_, err := paced(e.ctx, e.c.pace.changes, what, e.c.api.ModifyLaunchTemplate, &service.ModifyLaunchTemplateInput{
		LaunchTemplateName: sdk.String(t.name), DefaultVersion: sdk.String(strconv.FormatInt(number, 10)),
	})
	return err
}

func (e *ensuring) createVersion(t template, want *types.RequestLaunchTemplateData, latest types.LaunchTemplateVersion) (int64, error) {
	what := "create a version of launch template " + t.name
	out, err := paced(e.ctx, e.c.pace.changes, what, e.c.api.CreateLaunchTemplateVersion, &service.CreateLaunchTemplateVersionInput{
		LaunchTemplateName: sdk.String(t.name), LaunchTemplateData: want, VersionDescription: sdk.String(description),
		ClientToken: sdk.String(versionToken(want, latest)),
	})
	if err != nil {
		return 0, err
	}
	made := out.LaunchTemplateVersion
	if odd := drift.Between(want, made.LaunchTemplateData); len(odd) > 0 {
		e.c.log.Warn("launch template was stored otherwise than asked for", logkey.Template, t.name, logkey.Fields, odd)
	}
	number := sdk.ToInt64(made.VersionNumber)
	return number, e.setDefault(t, number)
}

// versionToken makes replicas that see the same drift make one version of it.
func versionToken(want *types.RequestLaunchTemplateData, latest types.LaunchTemplateVersion) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%v", sdk.ToString(latest.LaunchTemplateId), sdk.ToInt64(latest.VersionNumber), drift.Fields(want)))
	return hex.EncodeToString(sum[:16])
}

// prune deletes versions that no intent can name any more.
func (e *ensuring) prune(t template, latest int64) error {
	if latest <= keptVersions {
		return nil
	}
	all, err := e.versions(t.name)
	if err != nil {
		return aws.Wrap("read the versions of launch template "+t.name, err)
	}
	slices.SortFunc(all, func(a, b types.LaunchTemplateVersion) int {
		return cmp.Compare(sdk.ToInt64(b.VersionNumber), sdk.ToInt64(a.VersionNumber))
	})
	var old []string
	for i, v := range all {
		if i >= keptVersions && !sdk.ToBool(v.DefaultVersion) {
			old = append(old, strconv.FormatInt(sdk.ToInt64(v.VersionNumber), 10))
		}
	}
	if len(old) > 0 && e.change(t, resources.Updated, "%d versions older than the newest %d are deleted", len(old), keptVersions) {
		return e.delete(t, old)
	}
	return nil
}

// deleteBatch is EC2's limit for a call.
const deleteBatch = 200

func (e *ensuring) delete(t template, versions []string) error {
	what := "delete old versions of launch template " + t.name
	for batch := range slices.Chunk(versions, deleteBatch) {
		out, err := paced(e.ctx, e.c.pace.changes, what, e.c.api.DeleteLaunchTemplateVersions, &service.DeleteLaunchTemplateVersionsInput{
			LaunchTemplateName: sdk.String(t.name), Versions: batch,
		})
		if err != nil {
			return err
		}
		for _, failed := range out.UnsuccessfullyDeletedLaunchTemplateVersions {
			// Another replica was or will be faster. The next Ensure looks again.
			e.c.log.Warn("launch template version not deleted", logkey.Template, t.name, logkey.Version, sdk.ToInt64(failed.VersionNumber),
				logkey.Error, failed.ResponseError)
		}
	}
	return nil
}

// latestOf is the version with the highest number.
func latestOf(versions []types.LaunchTemplateVersion) types.LaunchTemplateVersion {
	return slices.MaxFunc(versions, func(a, b types.LaunchTemplateVersion) int {
		return int(sdk.ToInt64(a.VersionNumber) - sdk.ToInt64(b.VersionNumber))
	})
}
