package ec2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
)

// Options say what a fleet launches. Prefix, Region and Pools are required.
type Options struct {
	// Prefix names the deployment: the value of the tag remuda:fleet, which sets its machines apart from all
	// others of the account, and the beginning of the names of its launch templates. 1 to 64 characters.
	Prefix string
	// Region is passed to the hosts, which find their tables by it and the prefix.
	Region string
	// RoleID is the id of the hosts' role, such as AROAEXAMPLE; it becomes a tag of each machine, so that a
	// host of an older role keeps its host key. Empty: the host key is the instance id.
	RoleID string
	// InstanceProfile is the name of the hosts' profile. Empty: hosts have no
	// credentials, which only an emulator can do with.
	InstanceProfile string
	// Pools, by name.
	Pools map[string]Pool

	// Rates are how fast EC2 is called. The zero value of each takes its default.
	Rates Rates
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Logger gets warnings about what is odd but harmless; nil for none.
	Logger hclog.Logger
}

// Pool is how the machines of a pool are made. What hosts a request gets is in its order; this is the rest.
type Pool struct {
	// Images are the ids of the machine images by architecture, x86_64 or arm64
	// or both. Only types of these architectures are launched.
	Images map[string]string
	// Subnets to launch into. A launch uses one of each zone, since a fleet cannot have two: the others
	// spread the load and stand in for one without free addresses.
	Subnets []string
	// SecurityGroups of the machines, by id; none: the default group of the VPC.
	SecurityGroups []string
	// RootVolumeGiB is the size of the root volume, 1 to 16384; 0: the image's own.
	RootVolumeGiB int
	// Burstable allows types such as t3, which are slow once their credits are
	// spent: a build on one takes as long as its luck says.
	Burstable bool
	// Tags for cost allocation, on instances, volumes, network interfaces and launch templates. At most 30;
	// keys must be such that a host can read them in its metadata: letters, digits and + - = . _ : @.
	Tags map[string]string
	// PreRunner is a script that the agent runs once per boot before it registers the first runner; it begins
	// with #!. It must not have secrets: everyone with permission to describe launch templates can read it.
	PreRunner []byte
	// PostRelease is a script that the host runs as root whenever it has been
	// cleaned after a run; as PreRunner else.
	PostRelease []byte
	// Privileged says that a job may become root on its host: the agent leaves it
	// the ways to that, sudo and docker.
	Privileged bool
	// JobsReadMetadata lets jobs read the instance metadata, and with it the
	// credentials of the host's role. Only for pools that run trusted code.
	JobsReadMetadata bool
}

// maxTags leaves room for our own among EC2's 50 of a resource.
const maxTags = 30

// check says everything that is wrong, and gives the user data of each pool.
func (o Options) check() (map[string]string, error) {
	var wrong []error
	if o.Prefix == "" || o.Region == "" || len(o.Pools) == 0 {
		wrong = append(wrong, errors.New("a prefix, a region and at least one pool are required"))
	}
	userData := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Pools)) {
		pool := o.Pools[name]
		data, err := o.userData(name)
		userData[name] = data
		for _, err := range append(pool.check(), err) {
			if err != nil {
				wrong = append(wrong, fmt.Errorf("pool %s: %w", name, err))
			}
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("set up EC2: %w", errors.Join(wrong...))
	}
	return userData, nil
}

func (p Pool) check() []error {
	var wrong []error
	if len(p.Images) == 0 || len(p.Subnets) == 0 {
		wrong = append(wrong, errors.New("at least one image and one subnet are required"))
	}
	for _, arch := range slices.Sorted(maps.Keys(p.Images)) {
		if arch != catalogue.ArchX86 && arch != catalogue.ArchArm {
			wrong = append(wrong, fmt.Errorf("architecture %q: must be %s or %s", arch, catalogue.ArchX86, catalogue.ArchArm))
		}
	}
	if len(p.Tags) > maxTags {
		wrong = append(wrong, fmt.Errorf("%d tags: must be at most %d", len(p.Tags), maxTags))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		if strings.HasPrefix(key, tagPrefix) || strings.HasPrefix(strings.ToLower(key), "aws:") {
			wrong = append(wrong, fmt.Errorf("tag %s: keys that begin with aws: or %s are taken", key, tagPrefix))
		}
	}
	return wrong
}
