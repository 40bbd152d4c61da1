package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// token is the one thing that every file needs.
const token = "github: {token_env: GITHUB_TOKEN}\n"

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("controld.yaml", []byte(token+text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAFileIsReadOverTheDefaults(t *testing.T) {
	got := parse(t, `
grpc: {addr: "0.0.0.0:1", tls: {cert_file: /c, key_file: /k}}
compute: {process: {zones: [a, b], capacity: {"c*": 3}}}
resource_classes: {large: {memory_mib: 8192}, tiny: {cpu: 1, memory_mib: 512}}
pools: {build: {usage_classes: [spot], max_runtime: 1h}}
timeouts: {idle: 90s}
`)
	want := config.Default()
	hour := time.Hour
	want.GRPC = config.GRPC{Addr: "0.0.0.0:1", TLS: &config.TLS{CertFile: "/c", KeyFile: "/k"}}
	want.Compute.Process.Zones = []string{"a", "b"}
	want.Compute.Process.Capacity = map[string]int{"c*": 3}
	want.GitHub.TokenEnv = "GITHUB_TOKEN"
	want.ResourceClasses["large"] = config.ResourceClass{CPU: 2, MemoryMiB: 8192}
	want.ResourceClasses["tiny"] = config.ResourceClass{CPU: 1, MemoryMiB: 512}
	want.Pools["build"] = config.Pool{Reuse: lifecycle.ReuseSameRepository, Reset: statement.LevelSlate, Drift: lifecycle.DriftLeave, Awake: 10,
		SpotBreaker:  config.Default().Pools[config.DefaultPool].SpotBreaker,
		UsageClasses: []lifecycle.UsageClass{lifecycle.UsageSpot}, MaxRuntime: &hour}
	want.Timeouts.Idle = 90 * time.Second
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTheDefaultsLackOnlyAToken(t *testing.T) {
	err := config.Default().Check("defaults")
	want := "defaults: github: has no token; write token_file with a path, token_env with the name of a variable, or apps"
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	policy := lifecycle.DefaultPolicy()
	policy.Standby = lifecycle.StandbyListening
	if d := cmp.Diff(policy, config.Default().Policy(config.DefaultPool)); d != "" {
		t.Errorf("the default pool's policy: %s", d)
	}
}

func TestReadOverOtherDefaults(t *testing.T) {
	c := config.Default()
	c.GitHub.TokenFile = "/state/token"
	c.Compute.Process.BootDelay = time.Second
	if err := c.Read("f", []byte("timeouts: {claim: 5s}\n")); err != nil {
		t.Fatal(err)
	}
	if c.Timeouts.Claim != 5*time.Second || c.Compute.Process.BootDelay != time.Second || c.GitHub.TokenFile != "/state/token" {
		t.Errorf("got %+v", c)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controld.yaml")
	if _, err := config.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if err := os.WriteFile(path, []byte(token+"wrong: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(path)
	var all *strictyaml.Error
	if !errors.As(err, &all) || !strings.HasPrefix(err.Error(), path+":2:1: wrong: is not known") {
		t.Errorf("got %v", err)
	}
}

func TestPolicies(t *testing.T) {
	c := parse(t, `
timeouts: {creation: 1s, claim: 2s, max_runtime: 3s, release: 4s, idle: 41s, silence: 45s, external: 6s, unattended: 7s, claim_margin: 8s, forget: 9m}
pools:
  own: {max_runtime: 30s, idle_time: 50s, max_uses: 3, max_age: 48h, drift: ignore, reuse: same-owner, awake: 50}
`)
	want := lifecycle.Policy{
		CreationTimeout: time.Second, ClaimTimeout: 2 * time.Second, MaxRuntime: 3 * time.Second, ReleaseTimeout: 4 * time.Second,
		IdleTime: 41 * time.Second, WarmTime: time.Hour, RestAfter: 5 * time.Minute, Awake: 10, StoppedTime: 24 * time.Hour, Silence: 45 * time.Second, ExternalTimeout: 6 * time.Second, UnattendedTimeout: 7 * time.Second,
		ClaimMargin: 8 * time.Second, ReleasePoll: 5 * time.Second, DrainPoll: 15 * time.Second, EndPoll: 10 * time.Second, JobPoll: 30 * time.Second,
		ForgetAfter: 9 * time.Minute, Reuse: lifecycle.ReuseSameRepository, Reset: statement.LevelSlate, Drift: lifecycle.DriftLeave,
		Standby: lifecycle.StandbyListening,
	}
	if d := cmp.Diff(want, c.Policy("default")); d != "" {
		t.Error(d)
	}
	want.MaxAge, want.Drift, want.Standby = 48*time.Hour, lifecycle.DriftIgnore, lifecycle.StandbyClean // an owner has several repositories
	want.Awake = 50
	want.MaxRuntime, want.IdleTime, want.MaxUses, want.Reuse = 30*time.Second, 50*time.Second, 3, lifecycle.ReuseSameOwner
	if d := cmp.Diff(want, c.Policy("own")); d != "" {
		t.Error(d)
	}
}

func TestWhatAPoolOffers(t *testing.T) {
	c := parse(t, `
resource_classes: {tiny: {cpu: 1, memory_mib: 512}}
pools: {small: {resource_classes: [tiny, large], usage_classes: [spot]}}
`)
	if d := cmp.Diff([]string{"16xlarge", "2xlarge", "4xlarge", "8xlarge", "large", "tiny", "xlarge"}, c.PoolResourceClasses("default")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(lifecycle.UsageClasses, c.PoolUsageClasses("default")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"tiny", "large"}, c.PoolResourceClasses("small")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]lifecycle.UsageClass{lifecycle.UsageSpot}, c.PoolUsageClasses("small")); d != "" {
		t.Error(d)
	}
}

func TestWarnings(t *testing.T) {
	const own = "compute.process runs jobs as this program's own user: they can read and change the store and other hosts; serve only repositories that you trust"
	if d := cmp.Diff([]string{own}, parse(t, "").Warnings()); d != "" {
		t.Errorf("the defaults: %s", d)
	}
	got := parse(t, `
grpc: {addr: ":7443", tls: {cert_file: /c, key_file: /k}}
scale_down: {}
timeouts: {max_runtime: 3h}
limits: {hosts_per_repository: 0, hosts_per_owner: 0}
pools:
  brief: {max_runtime: 2h}
  long: {max_runtime: 30h}
  none: {maximum: 0}
  once: {privileged: true, reuse: none}
  again: {privileged: true, reuse: same-owner}
`).Warnings()
	want := []string{
		"grpc.tls is there without client_ca_file and callers: every call to :7443 is refused, since callers cannot be identified",
		own,
		"scale_down is there without webhooks: a run whose hosts were all idle and ended gets none for a job that is queued after that",
		"timeouts.max_runtime is 3h0m0s: a run that is never released keeps its hosts, and their cost, that long",
		"limits.hosts_per_owner is 0, which is no limit, unlike 0 of a pool's maximum; take it out for any number",
		"limits.hosts_per_repository is 0, which is no limit, unlike 0 of a pool's maximum; take it out for any number",
		"pool again is privileged: a job can become root on its host and read and change all that is on it",
		"pool again reuses hosts across the repositories of an owner: what one leaves behind can reach another",
		"pool again is privileged and reused: a job can leave something behind that no clean-up finds, for every later run with the same owner",
		"pool long has a max_runtime of 30h0m0s: a run that is never released keeps its hosts, and their cost, that long",
		"pool none may have no host (maximum: 0), so it serves nothing; take maximum out for any number",
		"pool once is privileged: a job can become root on its host and read and change all that is on it",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJobsThatReadMetadata(t *testing.T) {
	const section = "region: eu-west-1, ec2: {images: {arm64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678]}"
	got := parse(t, aws(section)+"\npools: {build: {jobs_read_metadata: true}}\n").Warnings()
	if text := strings.Join(got, "\n"); !strings.Contains(text, "pool build lets jobs read the instance metadata") {
		t.Errorf("warnings: %s", text)
	}
}

func TestThePoolsEC2(t *testing.T) {
	c := parse(t, aws("region: eu-west-1, tags: {team: web, all: x}, ec2: {images: {arm64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678], tags: {team: ci, a: b}}")+`
pools: {build: {ec2: {images: {x86_64: ami-87654321}, root_volume_gib: 200, root_volume_iops: 8000, root_volume_throughput: 900, cpu_baseline: c6i, kms_key_id: alias/ci, burstable: true, tags: {a: c}}}}
`)
	if c.AWS.Prefix != "remuda" {
		t.Errorf("the prefix is %q", c.AWS.Prefix)
	}
	want := config.EC2{
		Images: map[string]string{"arm64": "ami-12345678"}, Subnets: []string{"subnet-12345678"}, SecurityGroups: []string{"sg-12345678"},
		RootVolumeGiB: 50, IOPS: 3000, ThroughputMiB: 125, Tags: map[string]string{"all": "x", "team": "ci", "a": "b"},
	}
	if d := cmp.Diff(want, c.PoolEC2("default")); d != "" {
		t.Error(d)
	}
	yes := true
	want.Images, want.RootVolumeGiB, want.KMSKeyID, want.Burstable = map[string]string{"x86_64": "ami-87654321"}, 200, "alias/ci", &yes
	want.IOPS, want.ThroughputMiB, want.CPUBaseline = 8000, 900, "c6i"
	want.Tags = map[string]string{"all": "x", "team": "ci", "a": "c"}
	if d := cmp.Diff(want, c.PoolEC2("build")); d != "" {
		t.Error(d)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
}
