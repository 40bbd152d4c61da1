//go:build testhost

package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
)

// followEvery is how often EC2 is asked which instances run.
const followEvery = 100 * time.Millisecond

// instance is one of EC2's with the machine that it is.
type instance struct {
	*machine
	id       string
	metadata *imdstest.Service
}

// machines boot for every instance that EC2 says is running. EC2 presses the
// power button when it ends one. When one powers itself off, EC2 learns of it and
// ends the instance too (InstanceInitiatedShutdownBehavior=terminate).
type machines struct {
	t       testing.TB
	account *account
	world   *world
	layers  []string
	// change changes a machine's files before it boots; nil: as they are.
	change func(i types.Instance, s *system)

	mu     sync.Mutex
	booted map[string]*instance
}

func startMachines(t testing.TB, a *account, w *world, change func(types.Instance, *system)) *machines {
	t.Helper()
	return startMachinesOf(t, image(t), a, w, change)
}

// startMachinesOf is startMachines of another image.
func startMachinesOf(t testing.TB, layers []string, a *account, w *world, change func(types.Instance, *system)) *machines {
	t.Helper()
	m := &machines{t: t, account: a, world: w, layers: layers, change: change, booted: map[string]*instance{}}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			if err := m.follow(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("follow instances: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(followEvery):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return m
}

// follow boots what has come, and ends what has gone.
func (m *machines) follow(ctx context.Context) error {
	all, err := m.account.instances(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		booted := m.get(*i.InstanceId)
		switch {
		case booted == nil && i.State.Name == types.InstanceStateNameRunning:
			if err := m.boot(ctx, i); err != nil {
				return fmt.Errorf("boot %s: %w", *i.InstanceId, err)
			}
		case booted != nil && !alive(i):
			booted.press()
		case booted != nil && booted.isOff():
			if _, err := m.account.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*i.InstanceId}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *machines) get(id string) *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.booted[id]
}

func (m *machines) boot(ctx context.Context, i types.Instance) error {
	s := newSystem(m.t, m.layers...)
	s.furnish(m.t, m.account.hostsURL, m.world.certificate.pem)
	if err := cloudInit(ctx, m.t, m.account, *i.InstanceId, s); err != nil {
		return err
	}
	if m.change != nil {
		m.change(i, s)
	}
	metadata, err := m.account.metadata(ctx, i)
	if err != nil {
		return err
	}
	l := m.world.connect(m.t)
	m.world.tell(l, metadata)
	booted := &instance{boot(m.t, s, l), *i.InstanceId, metadata}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.booted[*i.InstanceId] = booted
	return nil
}

// up is the machine of an instance, once it has power.
func (m *machines) up(t testing.TB, id string) *instance {
	t.Helper()
	eventually(t, bootWithin, id+" boots", func() bool { return m.get(id) != nil })
	return m.get(id)
}

// of is the machine of an instance, once it has booted.
func (m *machines) of(t testing.TB, id string) *instance {
	t.Helper()
	i := m.up(t, id)
	i.booted()
	return i
}

// authorities are those that a machine trusts.
const authorities = "etc/ssl/certs/ca-certificates.crt"

// furnish adds what only a test needs: where AWS is, and the certificate that stands
// for GitHub's. Credentials come from the instance's metadata, which is at its
// real address.
func (s *system) furnish(t testing.TB, aws string, github []byte) {
	t.Helper()
	s.write(t, "etc/remuda/agentd.env", "AWS_ENDPOINT_URL="+aws+"\n", 0o644)
	s.write(t, "var/log/journal/README", "The journal is kept, to be read when the machine is off.\n", 0o644)
	trusted, err := os.ReadFile(filepath.Join(s.root, authorities))
	check(t, err)
	s.write(t, authorities, string(trusted)+string(github), 0o644)
}
