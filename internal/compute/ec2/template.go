package ec2

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// template is a launch template of a pool: EC2 takes the architecture of the
// types it may launch from the image, so there is one for each.
type template struct {
	name  string
	arch  string
	image string
}

// versionSeparator stands between the versions of a pool's two templates.
const versionSeparator = "/"

// templatesOf a pool: <prefix>-<pool>, and <prefix>-<pool>.arm64 for the arm64
// hosts of a pool that has both. Pools have no dot in their names.
func (c *Compute) templatesOf(pool string) []template {
	name := c.o.Prefix + "-" + pool
	var list []template
	images := c.o.Pools[pool].Images
	for _, arch := range []string{catalogue.ArchX86, catalogue.ArchArm} {
		image, has := images[arch]
		switch {
		case !has:
		case len(list) == 0:
			list = append(list, template{name, arch, image})
		default:
			list = append(list, template{name + "." + arch, arch, image})
		}
	}
	return list
}

// knownTemplate is the version that launches take, as of a time.
type knownTemplate struct {
	version string
	at      time.Time
}

const (
	// templateAge is how old an answer of Template may be. An order with a version that is no longer the
	// default is still valid, so this only bounds how long other replicas take to use a change.
	templateAge = time.Minute
	// askTimeout bounds the one call that all callers of Template wait for.
	askTimeout = 10 * time.Second
)

// Template is the version of the pool's launch template that new orders name:
// the default one, which Ensure sets. Of a pool with two templates it is both
// versions, as in 7/5. A template that is missing is lifecycle.ErrRefused.
func (c *Compute) Template(ctx context.Context, pool string) (string, error) {
	if len(c.templatesOf(pool)) == 0 {
		return "", fmt.Errorf("find launch template: %w: pool %q is not configured", lifecycle.ErrRefused, pool)
	}
	if version, ok := c.knownTemplate(pool); ok {
		return version, nil
	}
	asked := c.asking.DoChan(pool, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return c.askTemplate(ctx, pool)
	})
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("find launch template of pool %s: %w", pool, ctx.Err())
	case answer := <-asked:
		version, _ := answer.Val.(string)
		return version, answer.Err
	}
}

func (c *Compute) knownTemplate(pool string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.templates[pool]
	return known.version, ok && c.now().Sub(known.at) < templateAge
}

func (c *Compute) knowTemplate(pool, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.templates[pool] = knownTemplate{version, c.now()}
}

func (c *Compute) forgetTemplate(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.templates, pool)
}

func (c *Compute) askTemplate(ctx context.Context, pool string) (string, error) {
	if version, ok := c.knownTemplate(pool); ok {
		return version, nil // by the call before this one
	}
	var names []string
	for _, t := range c.templatesOf(pool) {
		names = append(names, t.name)
	}
	what := "find launch template " + strings.Join(names, " and ")
	if err := await(ctx, c.pace.reads, 1, what); err != nil {
		return "", err
	}
	out, err := c.api.DescribeLaunchTemplates(ctx, &service.DescribeLaunchTemplatesInput{LaunchTemplateNames: names})
	if aws.ClassOf(err) == aws.Gone {
		return "", aws.Refused(what, err, "run Refresh, which creates it")
	}
	if err != nil {
		return "", aws.Wrap(what, err)
	}
	defaults := map[string]int64{}
	for _, t := range out.LaunchTemplates {
		defaults[sdk.ToString(t.LaunchTemplateName)] = sdk.ToInt64(t.DefaultVersionNumber)
	}
	var versions []string
	for _, name := range names {
		versions = append(versions, strconv.FormatInt(defaults[name], 10))
	}
	version := strings.Join(versions, versionSeparator)
	c.knowTemplate(pool, version)
	return version, nil
}

// errVersion: the order was stored by something else than this adapter.
var errVersion = errors.New("not a version of a launch template")

// templatesAt are the templates that an order names, with their versions.
func (c *Compute) templatesAt(o lifecycle.LaunchOrder) ([]types.FleetLaunchTemplateSpecificationRequest, error) {
	names := []string{c.o.Prefix + "-" + o.Pool, c.o.Prefix + "-" + o.Pool + "." + catalogue.ArchArm}
	versions := strings.Split(o.TemplateVersion, versionSeparator)
	var list []types.FleetLaunchTemplateSpecificationRequest
	for i, version := range versions {
		if n, err := strconv.ParseUint(version, 10, 63); err != nil || n == 0 || i == len(names) {
			return nil, fmt.Errorf("template version %q: %w", o.TemplateVersion, errVersion)
		}
		list = append(list, types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateName: sdk.String(names[i]), Version: sdk.String(version),
		})
	}
	return list, nil
}

// data is what a template should hold. rootDevice is that of the image.
func (c *Compute) data(pool string, t template, rootDevice string) *types.RequestLaunchTemplateData {
	p := c.o.Pools[pool]
	data := &types.RequestLaunchTemplateData{
		ImageId:          sdk.String(t.image),
		SecurityGroupIds: slices.Clone(p.SecurityGroups),
		UserData:         sdk.String(c.userData[pool]),
		// A host that cannot end itself by a call powers off (docs/design.md#security).
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		// Version 2 only and one hop: no container and no forged request gets at it.
		// The tags in it tell the agent its role.
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: types.LaunchTemplateInstanceMetadataEndpointStateEnabled, HttpTokens: types.LaunchTemplateHttpTokensStateRequired,
			HttpPutResponseHopLimit: sdk.Int32(1), InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsStateEnabled,
		},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{
			DeviceName: sdk.String(rootDevice), Ebs: rootVolume(p),
		}},
	}
	if p.HibernateMiB > 0 {
		data.HibernationOptions = &types.LaunchTemplateHibernationOptionsRequest{Configured: sdk.Bool(true)}
	}
	if c.o.InstanceProfile != "" {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: sdk.String(c.o.InstanceProfile)}
	}
	for _, resource := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		data.TagSpecifications = append(data.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{
			ResourceType: resource, Tags: tagList(c.poolTags(pool)),
		})
	}
	return data
}

func rootVolume(p Pool) *types.LaunchTemplateEbsBlockDeviceRequest {
	volume := &types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination: sdk.Bool(true), Encrypted: sdk.Bool(true), VolumeType: types.VolumeTypeGp3,
	}
	if p.KMSKeyID != "" {
		volume.KmsKeyId = sdk.String(p.KMSKeyID)
	}
	if p.RootVolumeGiB > 0 {
		volume.VolumeSize = sdk.Int32(int32(p.RootVolumeGiB))
	}
	if p.IOPS > 0 {
		volume.Iops = sdk.Int32(int32(p.IOPS))
	}
	if p.ThroughputMiB > 0 {
		volume.Throughput = sdk.Int32(int32(p.ThroughputMiB))
	}
	return volume
}

// poolNames in order.
func (c *Compute) poolNames() []string { return slices.Sorted(maps.Keys(c.o.Pools)) }

// The files that user data puts on a host, by cloud-init, before the agent
// starts: the image's agentd unit is ordered after cloud-init.service.
const (
	// HostFile says where the host belongs: JSON with region, prefix, pool, and
	// what the pool says for the agent.
	HostFile = "/etc/remuda/host.json"
	// PreRunnerFile is the pool's script. There is none if the pool has none.
	PreRunnerFile = "/etc/remuda/pre-runner"
	// PostReleaseFile is the same for the script after each run.
	PostReleaseFile = "/etc/remuda/post-release"
)

// maxUserData is EC2's limit in bytes, before base64.
const maxUserData = 16 * 1024

// host is the content of HostFile.
type host struct {
	Region           string `json:"region"`
	Prefix           string `json:"prefix"`
	Pool             string `json:"pool"`
	PreRunner        string `json:"pre_runner,omitempty"`   // the path
	PostRelease      string `json:"post_release,omitempty"` // the path
	Privileged       bool   `json:"privileged,omitempty"`
	JobsReadMetadata bool   `json:"jobs_read_metadata,omitempty"`

	Caches []cache.OnHost `json:"caches,omitempty"`
}

// cloudConfig is the configuration for cloud-init. Its format is YAML, and JSON is YAML.
type cloudConfig struct {
	WriteFiles []writtenFile `json:"write_files"`
}

type writtenFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// userData is a pool's, compressed, which cloud-init undoes by itself, and in
// base64. Nothing in it is secret: a job could read it.
func (o Options) userData(pool string) (string, error) {
	p := o.Pools[pool]
	h := host{Region: o.Region, Prefix: o.Prefix, Pool: pool, Privileged: p.Privileged, JobsReadMetadata: p.JobsReadMetadata, Caches: cache.OnHosts(p.Caches)}
	var files []writtenFile
	if len(p.PreRunner) > 0 {
		h.PreRunner = PreRunnerFile
		files = append(files, scriptFile(PreRunnerFile, p.PreRunner))
	}
	if len(p.PostRelease) > 0 {
		h.PostRelease = PostReleaseFile
		files = append(files, scriptFile(PostReleaseFile, p.PostRelease))
	}
	settings, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode the host's settings: %w", err)
	}
	files = append(files, writtenFile{Path: HostFile, Permissions: "0644", Content: string(settings) + "\n"})
	var text bytes.Buffer
	text.WriteString("#cloud-config\n")
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cloudConfig{files}); err != nil {
		return "", fmt.Errorf("encode user data: %w", err)
	}
	packed, err := pack(text.Bytes())
	if err != nil {
		return "", err
	}
	if len(packed) > maxUserData {
		return "", fmt.Errorf("user data has %d bytes when compressed, and EC2 takes %d: shorten the pre-runner or post-release script, "+
			"or let it fetch what it needs", len(packed), maxUserData)
	}
	return base64.StdEncoding.EncodeToString(packed), nil
}

func scriptFile(path string, script []byte) writtenFile {
	file := writtenFile{Path: path, Permissions: "0755", Content: string(script)}
	if !plain(script) {
		file.Encoding, file.Content = "b64", base64.StdEncoding.EncodeToString(script)
	}
	return file
}

// plain: readers of YAML refuse what cannot be printed, even where JSON has it.
func plain(script []byte) bool {
	odd := func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) }
	return utf8.Valid(script) && bytes.IndexFunc(script, odd) < 0
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress user data: %w", err)
	}
	return packed.Bytes(), nil
}
