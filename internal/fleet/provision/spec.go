package provision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Defaults of a Provision (docs/interfaces.md#grpc-fleetservice).
const (
	DefaultPool          = "default"
	DefaultResourceClass = "large"
	DefaultTimeout       = 10 * time.Minute
	MaxTimeout           = 30 * time.Minute
	MaxCount             = 200
)

// DefaultInstanceTypes are the instance type patterns of a request that names none.
var DefaultInstanceTypes = []string{"c*", "m*", "r*"}

// WithMachine fills in the defaults of what machine a spec asks for.
func WithMachine(s lifecycle.Spec) lifecycle.Spec {
	s.ResourceClass = cmp.Or(s.ResourceClass, DefaultResourceClass)
	s.UsageClass = cmp.Or(s.UsageClass, lifecycle.UsageOnDemand)
	if len(s.InstanceTypes) == 0 {
		s.InstanceTypes = DefaultInstanceTypes
	}
	return s
}

// Fill fills in the defaults of a spec and checks it against the pools. The server checks the bounds of
// single fields; Fill checks how the fields go together. The error is *hosts.InvalidError.
func (pr *Provisioner) Fill(s lifecycle.Spec) (lifecycle.Spec, error) {
	s = WithMachine(s)
	s.Pool = cmp.Or(s.Pool, DefaultPool)
	s.RunAttempt = cmp.Or(s.RunAttempt, 1)
	s.Count = cmp.Or(s.Count, 1)
	s.MinimumCount = cmp.Or(s.MinimumCount, s.Count)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	pool, ok := pr.Pools[s.Pool]
	if !ok {
		return s, invalid("pool", fmt.Sprintf("there is no pool %q; configured: %v", s.Pool, slices.Sorted(maps.Keys(pr.Pools))))
	}
	s.MaxRuntime = cmp.Or(s.MaxRuntime, pool.Policy.MaxRuntime)
	return s, pr.check(s, pool)
}

func (pr *Provisioner) check(s lifecycle.Spec, pool ports.Pool) error {
	switch {
	case s.Count < 1 || s.Count > MaxCount:
		return invalid("instance_count", fmt.Sprintf("%d is not between 1 and %d", s.Count, MaxCount))
	case s.MinimumCount < 1 || s.MinimumCount > s.Count:
		return invalid("minimum_count", fmt.Sprintf("%d is not between 1 and instance_count (%d)", s.MinimumCount, s.Count))
	case s.Timeout < 0 || s.Timeout > MaxTimeout:
		return invalid("timeout", fmt.Sprintf("%s is not between 0 and %s", s.Timeout, MaxTimeout))
	case s.MaxRuntime < 0:
		return invalid("max_runtime", fmt.Sprintf("%s is negative", s.MaxRuntime))
	case !s.UsageClass.Valid() || !slices.Contains(pool.UsageClasses, s.UsageClass):
		return invalid("usage_class", fmt.Sprintf("pool %s has no %s hosts; it has %v", s.Pool, s.UsageClass, pool.UsageClasses))
	case !slices.Contains(pool.ResourceClasses, s.ResourceClass):
		return invalid("resource_class", fmt.Sprintf("pool %s has no class %q; it has %v", s.Pool, s.ResourceClass, pool.ResourceClasses))
	}
	if i := slices.IndexFunc(s.Labels, policy.IsDefaultLabel); i >= 0 && !pool.DefaultLabels {
		return invalid("labels", fmt.Sprintf("%.80q is a default label of GitHub's runner, which jobs of anyone name, and the hosts of pool %s have none", s.Labels[i], s.Pool))
	}
	for _, pattern := range s.InstanceTypes {
		if _, err := path.Match(pattern, ""); err != nil {
			return invalid("allowed_instance_types", fmt.Sprintf("%q is not a pattern", pattern))
		}
	}
	return pr.checkTypes(s, pool)
}

// checkTypes refuses instance types that the pool does not allow or the cloud does not offer: waiting would not help.
func (pr *Provisioner) checkTypes(s lifecycle.Spec, pool ports.Pool) error {
	class := pr.Classes[s.ResourceClass]
	if pr.Outside != nil {
		if why := pr.Outside(lifecycle.LaunchOrder{
			Pool: s.Pool, ResourceClass: s.ResourceClass, CPU: class.CPU, MemoryMiB: class.MemoryMiB, MaxCPU: class.MaxCPU,
			MaxMemoryMiB: class.MaxMemoryMiB, UsageClass: s.UsageClass, InstanceTypes: s.InstanceTypes, PoolTypes: pool.InstanceTypes,
		}); why != "" {
			return invalid("allowed_instance_types", why)
		}
	}
	if pr.Sells == nil || pr.Sells(class, s.InstanceTypes, pool.InstanceTypes) {
		return nil
	}
	rule := fmt.Sprintf("there is no instance type that matches %v", s.InstanceTypes)
	if len(pool.InstanceTypes) > 0 {
		rule += fmt.Sprintf(" and those of pool %s, %v,", s.Pool, pool.InstanceTypes)
	}
	return invalid("allowed_instance_types", fmt.Sprintf("%s and has %d vCPU and %d MiB for class %s, however long you wait",
		rule, class.CPU, class.MemoryMiB, s.ResourceClass))
}

func invalid(field, rule string) error { return &hosts.InvalidError{Field: field, Rule: rule} }

// matchesAny reports whether the instance type matches one of the patterns.
func matchesAny(patterns []string, instanceType string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, instanceType)
		return err == nil && ok
	})
}

// launchToken is the idempotency token of a launch, which makes the launch safe to
// repeat: the same request and number give the same token on every replica.
func launchToken(q lifecycle.Request, number int) string {
	key := lifecycle.RunKey(q.Repository, q.RunID) + "\x00" + q.RequestID + "\x00" + strconv.Itoa(number)
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// ErrSpecDiffers means that the request id belongs to a request with another spec.
var ErrSpecDiffers = errors.New("the same request_id was used with another body")

// ShortError says that a request did not get its hosts by its deadline.
type ShortError struct {
	RequestID string
	Ready     int
	Wanted    int
	Minimum   int
	// Why says how many were ready and what was missing.
	Why string
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("request %s: %s; at least %s needed", e.RequestID, e.Why, plural.Of(e.Minimum, "is", "are"))
}

// ReleasedError says that the run was released. A release ends all requests that were
// made for the run before it.
type ReleasedError struct {
	RunID string
}

func (e *ReleasedError) Error() string {
	return fmt.Sprintf("run %s was released after this request was made; hosts for it now need a new request", e.RunID)
}
