package ec2

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
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
	differs := drift(want, current.LaunchTemplateData)
	if len(differs) == 0 {
		return number, nil
	}
	if len(drift(want, latest.LaunchTemplateData)) == 0 {
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
	if odd := drift(want, made.LaunchTemplateData); len(odd) > 0 {
		e.c.log.Warn("launch template was stored otherwise than asked for", logkey.Template, t.name, logkey.Fields, odd)
	}
	number := sdk.ToInt64(made.VersionNumber)
	return number, e.setDefault(t, number)
}

// versionToken makes replicas that see the same drift make one version of it.
func versionToken(want *types.RequestLaunchTemplateData, latest types.LaunchTemplateVersion) string {
	fields := map[string]string{}
	flatten("", reflect.ValueOf(want), fields)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%v", sdk.ToString(latest.LaunchTemplateId), sdk.ToInt64(latest.VersionNumber), fields))
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

// drift are the fields in which a stored template differs from what it should be, by name: what is missing,
// different or there beside it. The two types have the same fields, so they are compared by those.
func drift(want *types.RequestLaunchTemplateData, got *types.ResponseLaunchTemplateData) []string {
	wanted, stored := map[string]string{}, map[string]string{}
	flatten("", reflect.ValueOf(want), wanted)
	flatten("", reflect.ValueOf(got), stored)
	for _, path := range toldByEC2 {
		delete(stored, path)
	}
	unpackUserData(wanted)
	unpackUserData(stored)
	differ := map[string]bool{}
	for path, value := range wanted {
		if stored[path] != value {
			differ[field(path)] = true
		}
	}
	for path := range stored {
		if _, ok := wanted[path]; !ok {
			differ[field(path)] = true
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// toldByEC2 are fields that EC2 adds to an answer although they were not requested.
var toldByEC2 = []string{".MetadataOptions.State", ".MetadataOptions.HttpProtocolIpv6"}

// field is the template's field that a path leads into.
func field(path string) string {
	name := strings.TrimPrefix(path, ".")
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name = name[:i]
	}
	return name
}

// flatten writes every value that is set under its path. What is unset, false,
// empty or 0 is the same as left out, as it is to EC2.
func flatten(path string, v reflect.Value, into map[string]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(path, v.Elem(), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				flatten(path+"."+f.Name, v.Field(i), into)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			flatten(path+"["+elementName(v.Index(i), i)+"]", v.Index(i), into)
		}
	default:
		if !v.IsZero() {
			into[path] = fmt.Sprint(v.Interface())
		}
	}
}

// elementName makes the order of a list not matter where its elements have a name of their own.
func elementName(v reflect.Value, i int) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	for _, key := range []string{"Key", "ResourceType", "DeviceName"} {
		f := reflect.Indirect(v).FieldByName(key)
		if f.IsValid() && reflect.Indirect(f).Kind() == reflect.String {
			return reflect.Indirect(f).String()
		}
	}
	return strconv.Itoa(i)
}

// unpackUserData: what is compressed is compared, since another compressor may write the same in another way.
func unpackUserData(fields map[string]string) {
	const path = ".UserData"
	packed, err := base64.StdEncoding.DecodeString(fields[path])
	if err != nil {
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return
	}
	text, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err == nil {
		fields[path] = string(text)
	}
}

// maxUnpacked bounds what a template edited by hand may unfold to; it is more than any of ours could.
const maxUnpacked = 64 << 20

// latestOf is the version with the highest number.
func latestOf(versions []types.LaunchTemplateVersion) types.LaunchTemplateVersion {
	return slices.MaxFunc(versions, func(a, b types.LaunchTemplateVersion) int {
		return int(sdk.ToInt64(a.VersionNumber) - sdk.ToInt64(b.VersionNumber))
	})
}
