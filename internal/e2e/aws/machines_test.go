package aws_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// machines are what boots: an agentd for every instance that EC2 says is
// running, which ends when EC2 says that the instance does, or is stopped. One that is started again has its disk.
type machines struct {
	t            testing.TB
	account      *account
	distribution string
	stopped      chan struct{}

	mu       sync.Mutex
	programs string              // the directory of the agentd that machines boot
	booted   map[string]*machine // by instance id
}

type machine struct {
	*process
	root string // its disk
	log  *buffer
	// powerOn starts the agentd on the disk of the machine. off: it has none now, since its instance does not run.
	powerOn func() *process
	off     bool
}

// end ends all that runs on the machine: a runner has a process group of its own.
func (m *machine) end(t testing.TB) {
	t.Helper()
	m.kill()
	if err := local.EndProcesses(m.root); err != nil {
		t.Error(err)
	}
}

// lookEvery is how often EC2 is asked which instances run.
const lookEvery = 500 * time.Millisecond

func startMachines(t testing.TB, a *account, programs string) *machines {
	t.Helper()
	m := &machines{
		t: t, account: a, distribution: filepath.Join(t.TempDir(), "runner"), stopped: make(chan struct{}),
		programs: programs, booted: map[string]*machine{},
	}
	check(t, runner.LayOut(m.distribution, filepath.Join(testrun.System.Dir(t), "standin-runner")))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(m.stopped)
		for ctx.Err() == nil {
			m.follow(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-m.stopped
		for id, booted := range m.booted {
			booted.end(t)
			if t.Failed() {
				t.Logf("agentd of %s:\n%s", id, booted.log)
			}
		}
	})
	return m
}

// follow boots what has come, and ends what has gone.
func (m *machines) follow(ctx context.Context) {
	instances, err := m.account.instances(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.t.Errorf("list instances: %v", err)
		}
		return
	}
	for _, i := range instances {
		if !ofFleet(i) {
			continue // an instance of controld, which this test is
		}
		m.mu.Lock()
		booted := m.booted[*i.InstanceId]
		m.mu.Unlock()
		switch {
		case booted == nil && i.State.Name == types.InstanceStateNameRunning:
			if booted, err = m.boot(ctx, i); err != nil {
				m.t.Errorf("boot %s: %v", *i.InstanceId, err)
				return
			}
			m.mu.Lock()
			m.booted[*i.InstanceId] = booted
			m.mu.Unlock()
		case booted != nil && booted.off == alive(i):
			m.power(booted, alive(i))
		}
	}
}

// power turns a machine on or off.
func (m *machines) power(booted *machine, on bool) {
	if !on {
		booted.end(m.t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	booted.off = !on
	if on {
		booted.process = booted.powerOn()
	}
}

// isOff reports whether a machine has booted, and runs nothing now.
func (m *machines) isOff(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.booted[id] != nil && m.booted[id].off
}

// ofFleet reports whether an instance is a host.
func ofFleet(i types.Instance) bool {
	return slices.ContainsFunc(i.Tags, func(tag types.Tag) bool { return *tag.Key == "remuda:fleet" })
}

// boot does what the image does: cloud-init writes the files of the user data,
// and agentd starts with nothing to go by but them and the instance metadata.
func (m *machines) boot(ctx context.Context, i types.Instance) (*machine, error) {
	root := filepath.Join(m.t.TempDir(), *i.InstanceId)
	if err := m.cloudInit(ctx, *i.InstanceId, root); err != nil {
		return nil, err
	}
	metadata, err := m.metadata(ctx, i)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]any{
		"directory": filepath.Join(root, "host"), "host_file": filepath.Join(root, "etc/remuda/host.json"),
		"store":     map[string]any{"dynamodb": map[string]any{}},
		"runner":    map[string]any{"distribution": m.distribution, "minimum_free_mib": 1},
		"power_off": []string{"true"},
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, "agentd.yaml")
	if err := os.WriteFile(path, settings, 0o600); err != nil {
		return nil, err
	}
	m.mu.Lock()
	programs := m.programs
	m.mu.Unlock()
	log := &buffer{}
	env := append(append(m.account.hosts.Environ(), metadata.Environment()...), "AWS_REGION=")
	powerOn := func() *process { return start(m.t, log, env, programs, "agentd", "--config", path) }
	return &machine{process: powerOn(), root: root, log: log, powerOn: powerOn}, nil
}

// cloudInit writes the files that the instance's user data asks for, below root.
func (m *machines) cloudInit(ctx context.Context, id, root string) error {
	out, err := m.account.ec2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{
		InstanceId: &id, Attribute: types.InstanceAttributeNameUserData,
	})
	if err != nil {
		return err
	}
	packed, err := base64.StdEncoding.DecodeString(sdk.ToString(out.UserData.Value))
	if err != nil {
		return fmt.Errorf("user data: %w", err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("user data: %w", err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return fmt.Errorf("user data: %w", err)
	}
	var cloudConfig struct {
		WriteFiles []struct{ Path, Content, Permissions string } `yaml:"write_files"`
	}
	if !strings.HasPrefix(string(text), "#cloud-config\n") {
		return fmt.Errorf("user data: not a cloud-config: %.40q", text)
	}
	if err := yaml.Unmarshal(text, &cloudConfig); err != nil {
		return fmt.Errorf("user data: %w", err)
	}
	for _, f := range cloudConfig.WriteFiles {
		path := filepath.Join(root, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.Content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// metadata is what EC2 tells the instance of itself.
func (m *machines) metadata(ctx context.Context, i types.Instance) (*imdstest.Service, error) {
	// EC2 gives an instance credentials of its role, with its id as the name of
	// the session.
	session, err := m.account.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &m.account.roleARN, RoleSessionName: i.InstanceId})
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, tag := range i.Tags {
		tags[*tag.Key] = *tag.Value
	}
	lifecycle := "on-demand"
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		lifecycle = "spot"
	}
	return imdstest.Start(m.t, imdstest.Machine{
		InstanceID: *i.InstanceId, Region: region, Zone: *i.Placement.AvailabilityZone, Type: string(i.InstanceType), Arch: "x86_64",
		Lifecycle: lifecycle, Tags: tags, Role: profile,
		Credentials: imdstest.Credentials{
			AccessKeyID: *session.Credentials.AccessKeyId, SecretAccessKey: *session.Credentials.SecretAccessKey,
			Token: *session.Credentials.SessionToken, Expires: time.Now().Add(6 * time.Hour),
		},
	}), nil
}
