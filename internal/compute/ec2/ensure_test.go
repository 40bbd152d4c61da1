package ec2_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const templateName = prefix + "-default"

// versions of the pool's launch template, and which is the default.
func (w world) versions(t testing.TB) (all []types.LaunchTemplateVersion, current int64) {
	t.Helper()
	out, err := w.client.DescribeLaunchTemplateVersions(t.Context(), &service.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: sdk.String(templateName), MaxResults: sdk.Int32(200),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out.LaunchTemplateVersions {
		if sdk.ToBool(v.DefaultVersion) {
			current = *v.VersionNumber
		}
	}
	return out.LaunchTemplateVersions, current
}

// edit makes a version by hand.
func (w world) edit(t testing.TB, makeDefault bool, change func(*types.RequestLaunchTemplateData)) {
	t.Helper()
	data := &types.RequestLaunchTemplateData{ImageId: sdk.String(w.images[catalogue.LocalArch()])}
	change(data)
	out, err := w.client.CreateLaunchTemplateVersion(t.Context(), &service.CreateLaunchTemplateVersionInput{
		LaunchTemplateName: sdk.String(templateName), LaunchTemplateData: data,
	})
	if err != nil {
		t.Fatal(err)
	}
	if makeDefault {
		w.setDefault(t, *out.LaunchTemplateVersion.VersionNumber)
	}
}

func (w world) setDefault(t testing.TB, version int64) {
	t.Helper()
	_, err := w.client.ModifyLaunchTemplate(t.Context(), &service.ModifyLaunchTemplateInput{
		LaunchTemplateName: sdk.String(templateName), DefaultVersion: sdk.String(fmt.Sprint(version)),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func updated(detail string) []resources.Resource {
	return []resources.Resource{{Kind: "launch-template", Name: templateName, Change: resources.Updated, Detail: detail}}
}

var created = []resources.Resource{
	{Kind: "launch-template", Name: templateName, Change: resources.Created, Detail: "it was missing"},
}

func TestEnsureCreatesWhatTheConfigurationSays(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.open(t, w.options())
	equal(t, "changes", created, ensure(t, c))
	equal(t, "changes the second time", []resources.Resource(nil), ensure(t, c))
	versions, _ := w.versions(t)
	if len(versions) != 1 {
		t.Fatalf("%d versions, want 1", len(versions))
	}
	data := versions[0].LaunchTemplateData
	tags := []types.Tag{tag("remuda:fleet", prefix), tag("remuda:pool", "default"), tag("remuda:role", roleID), tag("team", "ci")}
	equal(t, "metadata options", &types.LaunchTemplateInstanceMetadataOptions{
		HttpEndpoint: "enabled", HttpTokens: "required", HttpPutResponseHopLimit: sdk.Int32(1), InstanceMetadataTags: "enabled",
	}, data.MetadataOptions, ignoreSerde...)
	equal(t, "volumes", []types.LaunchTemplateBlockDeviceMapping{{DeviceName: sdk.String("/dev/sda1"), Ebs: &types.LaunchTemplateEbsBlockDevice{
		Encrypted: sdk.Bool(true), DeleteOnTermination: sdk.Bool(true), VolumeType: "gp3", VolumeSize: sdk.Int32(50),
	}}}, data.BlockDeviceMappings, ignoreSerde...)
	equal(t, "tags", []types.LaunchTemplateTagSpecification{
		{ResourceType: "instance", Tags: tags}, {ResourceType: "volume", Tags: tags}, {ResourceType: "network-interface", Tags: tags},
	}, data.TagSpecifications, ignoreSerde...)
	equal(t, "rest", []string{"terminate", w.images[catalogue.LocalArch()], "remuda-host", w.group}, []string{
		string(data.InstanceInitiatedShutdownBehavior), *data.ImageId, *data.IamInstanceProfile.Name, strings.Join(data.SecurityGroupIds, " "),
	})
	out, err := w.client.DescribeTags(t.Context(), &service.DescribeTagsInput{
		Filters: []types.Filter{{Name: sdk.String("resource-id"), Values: []string{*versions[0].LaunchTemplateId}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []types.Tag
	for _, d := range out.Tags {
		got = append(got, types.Tag{Key: d.Key, Value: d.Value})
	}
	slices.SortFunc(got, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	equal(t, "tags of the template", tags, got, ignoreSerde...)
}

func tag(key, value string) types.Tag {
	return types.Tag{Key: sdk.String(key), Value: sdk.String(value)}
}

// userData is what cloud-init gets from the template's default version.
func (w world) userData(t testing.TB) string {
	t.Helper()
	out, err := w.client.DescribeLaunchTemplateVersions(t.Context(), &service.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: sdk.String(templateName), Versions: []string{"$Default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(*out.LaunchTemplateVersions[0].LaunchTemplateData.UserData)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUserDataTellsAHostWhereItBelongs(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	type file struct{ Path, Permissions, Encoding, Content string }
	host := func(more string) file {
		return file{"/etc/remuda/host.json", "0644", "", `{"region":"us-east-1","prefix":"remuda","pool":"default"` + more + "}\n"}
	}
	const preRunner = `,"pre_runner":"/etc/remuda/pre-runner"`
	tests := map[string]struct {
		change func(*ec2.Pool)
		want   []file
	}{
		"with a script": {func(p *ec2.Pool) { p.PreRunner = []byte("#!/bin/sh\necho \"<ü>\"\n") },
			[]file{{"/etc/remuda/pre-runner", "0755", "", "#!/bin/sh\necho \"<ü>\"\n"}, host(preRunner)}},
		"with a script that is no text": {func(p *ec2.Pool) { p.PreRunner = []byte("#!/bin/sh\n\x00\xff") },
			[]file{{"/etc/remuda/pre-runner", "0755", "b64", base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n\x00\xff"))}, host(preRunner)}},
		"without one":              {func(p *ec2.Pool) { p.PreRunner = nil }, []file{host("")}},
		"for jobs with a metadata": {func(p *ec2.Pool) { p.PreRunner, p.JobsReadMetadata = nil, true }, []file{host(`,"jobs_read_metadata":true`)}},
		"of a privileged pool":     {func(p *ec2.Pool) { p.PreRunner, p.Privileged = nil, true }, []file{host(`,"privileged":true`)}},
		"of a pool with caches": {func(p *ec2.Pool) {
			p.PreRunner = nil
			p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 4 << 30, From: []string{"main"}}}
		}, []file{host(`,"caches":[{"name":"go","paths":["~/go/pkg/mod"],"size_mib":4096,"scope":"repository","keep":"168h0m0s"}]`)}},
		"with a script for after a run": {func(p *ec2.Pool) { p.PreRunner, p.PostRelease = nil, []byte("#!/bin/sh\nclean\n") },
			[]file{{"/etc/remuda/post-release", "0755", "", "#!/bin/sh\nclean\n"}, host(`,"post_release":"/etc/remuda/post-release"`)}},
		"with both scripts": {func(p *ec2.Pool) { p.PostRelease = []byte("#!/bin/sh\nclean\n") },
			[]file{
				{"/etc/remuda/pre-runner", "0755", "", "#!/bin/sh\necho ready\n"},
				{"/etc/remuda/post-release", "0755", "", "#!/bin/sh\nclean\n"},
				host(preRunner + `,"post_release":"/etc/remuda/post-release"`),
			}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready(t, pool(w.options(), test.change))
			config, ok := strings.CutPrefix(w.userData(t), "#cloud-config\n")
			var got struct {
				Files []file `json:"write_files"`
			}
			if err := json.Unmarshal([]byte(config), &got); err != nil || !ok {
				t.Fatalf("not a cloud-config in JSON: %v\n%s", err, config)
			}
			equal(t, "files", test.want, got.Files)
		})
	}
}

func TestDriftIsCorrected(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	const replaced = ": a new version replaces it"
	tests := map[string]struct {
		drift  func(t *testing.T, w world)
		change func(*ec2.Pool) // of the configuration
		want   []resources.Resource
		// current and count of the versions afterwards.
		current int64
		count   int
	}{
		"edited by hand": {
			drift: func(t *testing.T, w world) {
				w.edit(t, true, func(d *types.RequestLaunchTemplateData) { d.KeyName = sdk.String("mine") })
			},
			want: updated("version 2 differs from the configuration in BlockDeviceMappings, IamInstanceProfile, " +
				"InstanceInitiatedShutdownBehavior, KeyName, MetadataOptions, SecurityGroupIds, TagSpecifications, UserData" + replaced),
			current: 3, count: 3,
		},
		"edited and not made the default": {
			drift:   func(t *testing.T, w world) { w.edit(t, false, func(*types.RequestLaunchTemplateData) {}) },
			current: 1, count: 2,
		},
		"another default set by hand": {
			drift: func(t *testing.T, w world) {
				w.ready(t, pool(w.options(), func(p *ec2.Pool) { p.RootVolumeGiB = 20 }))
				w.ready(t, w.options())
				w.setDefault(t, 2)
			},
			want: updated("version 3 is right and was not the default, which was 2"), current: 3, count: 3,
		},
		"a larger volume": {
			change: func(p *ec2.Pool) { p.RootVolumeGiB = 100 },
			want:   updated("version 1 differs from the configuration in BlockDeviceMappings" + replaced), current: 2, count: 2,
		},
		"another key": {
			change: func(p *ec2.Pool) { p.KMSKeyID = "alias/ci" },
			want:   updated("version 1 differs from the configuration in BlockDeviceMappings" + replaced), current: 2, count: 2,
		},
		"another script": {
			change: func(p *ec2.Pool) { p.PreRunner = []byte("#!/bin/sh\ntrue\n") },
			want:   updated("version 1 differs from the configuration in UserData" + replaced), current: 2, count: 2,
		},
		"a cache more": {
			change: func(p *ec2.Pool) {
				p.Caches = []cache.Spec{{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 1 << 30}}
			},
			want: updated("version 1 differs from the configuration in UserData" + replaced), current: 2, count: 2,
		},
		"a tag less": {
			change: func(p *ec2.Pool) { p.Tags = nil },
			want:   updated("version 1 differs from the configuration in TagSpecifications" + replaced), current: 2, count: 2,
		},
		"no security group": {
			change: func(p *ec2.Pool) { p.SecurityGroups = nil },
			want:   updated("version 1 differs from the configuration in SecurityGroupIds" + replaced), current: 2, count: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options()
			c := w.ready(t, o)
			if test.drift != nil {
				test.drift(t, w)
			}
			if test.change != nil {
				c = w.open(t, pool(o, test.change))
			}
			dry, err := c.Ensure(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "a dry run", test.want, dry)
			equal(t, "changes", test.want, ensure(t, c))
			versions, current := w.versions(t)
			equal(t, "default version and count", []int64{test.current, int64(test.count)}, []int64{current, int64(len(versions))})
			equal(t, "changes the second time", []resources.Resource(nil), ensure(t, c))
			version, err := c.Template(t.Context(), "default")
			if err != nil || version != fmt.Sprint(test.current) {
				t.Errorf("template: got %q, %v", version, err)
			}
		})
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	changes, err := w.open(t, w.options()).Ensure(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "changes", created, changes)
	for _, operation := range []string{"CreateLaunchTemplate", "CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "DeleteLaunchTemplateVersions"} {
		if n := w.calls(operation); n > 0 {
			t.Errorf("%d calls of %s", n, operation)
		}
	}
}

func TestOldVersionsArePruned(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	c := w.ready(t, w.options())
	for range 11 {
		w.edit(t, false, func(*types.RequestLaunchTemplateData) {})
	}
	want := updated("1 versions older than the newest 10 are deleted") // of 2 old ones, 1 is the default
	equal(t, "changes", want, ensure(t, c))
	versions, current := w.versions(t)
	equal(t, "versions left and the default", []int64{11, 1}, []int64{int64(len(versions)), current})
	equal(t, "changes the second time", []resources.Resource(nil), ensure(t, c))
}

func TestAPoolWithTwoArchitecturesHasTwoTemplates(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	o := pool(w.options(), func(p *ec2.Pool) { p.Images = w.images })
	c := w.ready(t, o)
	w.edit(t, false, func(*types.RequestLaunchTemplateData) {})
	w.edit(t, true, func(*types.RequestLaunchTemplateData) {})
	ensure(t, c)
	for _, c := range []*ec2.Compute{c, w.open(t, o)} {
		if version, err := c.Template(t.Context(), "default"); err != nil || version != "4/1" {
			t.Errorf("template: got %q, %v, want 4/1", version, err)
		}
	}
}

// An image of another account that is deprecated can still be launched. Refresh warns of it.
func TestADeprecatedImage(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	image := w.images[catalogue.LocalArch()]
	w.Deprecate(image)
	o := w.options()
	var log bytes.Buffer
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
	c := w.ready(t, o)
	if len(launch(t, c, order(t, c, 1, 1))) != 1 {
		t.Error("nothing was launched")
	}
	if !strings.Contains(log.String(), "image is deprecated") || !strings.Contains(log.String(), image) {
		t.Errorf("the log does not warn of it: %s", &log)
	}
}

// The size of the image's own volume is enough, and so is any where the image names none or the pool does.
func TestVolumesThatAreLargeEnough(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	for name, test := range map[string]struct {
		gib    int
		device string // in the place of the root device in the image's mapping
		want   string
	}{
		"as large":                   {15, "/dev/sda1", ""},
		"the image's":                {0, "/dev/sda1", ""},
		"smaller, of another device": {8, "/dev/sdb", ""},
		"smaller":                    {8, "/dev/sda1", "set root_volume_gib to at least 15"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.Wrap("ec2", "DescribeImages", func(next awstest.Hook) awstest.Hook {
				return func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
					next(rw, r, func(r *http.Request) *awstest.Answer {
						answer := forward(r)
						answer.Body = bytes.ReplaceAll(answer.Body, []byte("<deviceName>/dev/sda1<"), []byte("<deviceName>"+test.device+"<"))
						return answer
					})
				}
			})
			_, err := w.open(t, pool(w.options(), func(p *ec2.Pool) { p.RootVolumeGiB = test.gib })).Ensure(t.Context(), true)
			if got := fmt.Sprint(err); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestEnsureSaysWhatIsWrong(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	tests := map[string]struct {
		break_ func(t *testing.T, w world, p *ec2.Pool)
		want   []string
	}{
		"the image is gone": {func(_ *testing.T, _ world, p *ec2.Pool) {
			p.Images = map[string]string{catalogue.LocalArch(): "ami-0123456789abcdef0"}
		},
			[]string{"ami-0123456789abcdef0", "pool default", "build a new image"}},
		"the image is of another architecture": {func(_ *testing.T, w world, p *ec2.Pool) {
			p.Images = map[string]string{catalogue.ArchX86: w.images[catalogue.ArchArm]}
		}, []string{"its architecture is arm64 and not x86_64"}},
		"the image does not fit on the volume": {func(_ *testing.T, _ world, p *ec2.Pool) { p.RootVolumeGiB = 14 }, []string{
			"pool default has root volumes of 14 GiB, and that of the image has 15 GiB, which EC2 refuses; set root_volume_gib to at least 15, or build"}},
		"a subnet is gone": {func(_ *testing.T, _ world, p *ec2.Pool) { p.Subnets = append(p.Subnets, "subnet-0123456789abcdef0") },
			[]string{"subnet-0123456789abcdef0: not in this account and region", "correct the pool's subnets"}},
		"a permission is missing": {func(_ *testing.T, w world, _ *ec2.Pool) {
			w.deny("CreateLaunchTemplate")
		}, []string{"create launch template remuda-default", "allow the action ec2:CreateLaunchTemplate (docs/iam)"}},
		"another is": {func(_ *testing.T, w world, _ *ec2.Pool) { w.deny("DescribeImages") },
			[]string{"allow the action ec2:DescribeImages (docs/iam)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options()
			o.Pools["good"] = o.Pools["default"]
			bad := o.Pools["default"]
			test.break_(t, w, &bad)
			o.Pools["default"] = bad
			_, err := w.open(t, o).Ensure(t.Context(), false)
			if !errors.Is(err, lifecycle.ErrRefused) {
				t.Fatalf("got %v, want ErrRefused", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			// What is right of the other pool does not hang on this one.
			if strings.Contains(name, "permission") || name == "another is" {
				return
			}
			if _, err := w.open(t, o).Template(t.Context(), "good"); err != nil {
				t.Errorf("the other pool: %v", err)
			}
		})
	}
}

// deny refuses an operation as EC2 does a caller without the permission.
func (w world) deny(operation string) {
	w.proxy.Handle("ec2", operation, func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
	})
}

func TestALostAnswerMakesNoSecondVersion(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	for _, operation := range []string{"CreateLaunchTemplate", "CreateLaunchTemplateVersion", "ModifyLaunchTemplate"} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.Inject(awstest.Fault{Service: "ec2", Operation: operation, Nth: 1, Kind: awstest.LostAfterSuccess})
			w.ready(t, w.options())
			w.ready(t, pool(w.options(), func(p *ec2.Pool) { p.RootVolumeGiB = 20 }))
			versions, current := w.versions(t)
			equal(t, "versions and the default", []int64{2, 2}, []int64{int64(len(versions)), current})
		})
	}
}

func TestReplicasThatSeeTheSameDriftMakeOneVersion(t *testing.T) {
	w := newWorld(t)
	w.ready(t, w.options())
	o := pool(w.options(), func(p *ec2.Pool) { p.RootVolumeGiB = 20 })
	var wg sync.WaitGroup
	for range 4 {
		c := w.open(t, o)
		wg.Go(func() {
			if _, err := c.Ensure(t.Context(), false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	versions, current := w.versions(t)
	equal(t, "versions and the default", []int64{2, 2}, []int64{int64(len(versions)), current})
}

func TestOptionsAreChecked(t *testing.T) {
	racepass.OneGoroutine(t)
	// Noise cannot be compressed.
	noise := make([]byte, 17*1024)
	rand.New(rand.NewSource(1)).Read(noise)
	good := ec2.Options{Prefix: prefix, Region: region, Pools: map[string]ec2.Pool{"default": {
		Images: map[string]string{"x86_64": "ami-1"}, Subnets: []string{"subnet-1"}, PreRunner: []byte(strings.Repeat("true\n", 20_000)),
	}}}
	if _, err := ec2.New(nil, good); err != nil {
		t.Errorf("100 kB of script that can be compressed: %v", err)
	}
	tests := map[string]struct {
		o    ec2.Options
		want string
	}{
		"nothing":             {ec2.Options{}, "a prefix, a region and at least one pool are required"},
		"no image":            {pool(good, func(p *ec2.Pool) { p.Images = nil }), "pool default: at least one image and one subnet are required"},
		"no subnet":           {pool(good, func(p *ec2.Pool) { p.Subnets = nil }), "pool default: at least one image and one subnet are required"},
		"an odd architecture": {pool(good, func(p *ec2.Pool) { p.Images = map[string]string{"mips": "ami-1"} }), `architecture "mips": must be x86_64 or arm64`},
		"a tag of ours":       {pool(good, func(p *ec2.Pool) { p.Tags = map[string]string{"remuda:fleet": "x"} }), "tag remuda:fleet: keys that begin with aws: or remuda: are taken"},
		"a tag of AWS":        {pool(good, func(p *ec2.Pool) { p.Tags = map[string]string{"AWS:x": "x"} }), "tag AWS:x"},
		"too much user data":  {pool(good, func(p *ec2.Pool) { p.PreRunner = noise }), "EC2 takes 16384: shorten the pre-runner or post-release script"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := ec2.New(nil, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
