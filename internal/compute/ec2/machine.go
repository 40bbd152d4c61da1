package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// machines converts the instances of an answer, in the same order.
func (c *Compute) machines(ctx context.Context, instances []types.Instance) ([]lifecycle.Machine, error) {
	var names []string
	for _, i := range instances {
		names = append(names, string(i.InstanceType))
	}
	sizes, err := c.sizesOf(ctx, names)
	if err != nil {
		return nil, err
	}
	var machines []lifecycle.Machine
	for _, i := range instances {
		m := tagged(sdk.ToString(i.InstanceId), tagMap(i.Tags))
		sizes[string(i.InstanceType)].describe(&m, string(i.InstanceType))
		if i.Architecture != "" {
			m.Arch = string(i.Architecture)
		}
		m.State, m.Impaired = state(i.State)
		m.EndReason, m.EndedAt = endReason(m.State, i.StateReason), endedAt(m.State, sdk.ToString(i.StateTransitionReason))
		if i.Placement != nil {
			m.Zone = sdk.ToString(i.Placement.AvailabilityZone)
		}
		m.UsageClass = lifecycle.UsageOnDemand
		if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
			m.UsageClass = lifecycle.UsageSpot
		}
		m.LaunchedAt = sdk.ToTime(i.LaunchTime).UTC().Round(0)
		m.Foreign = c.foreign(i, m.State)
		m.Hibernates = i.HibernationOptions != nil && sdk.ToBool(i.HibernationOptions.Configured)
		machines = append(machines, m)
	}
	return machines, nil
}

// foreign reports whether an instance with our tag was not launched by us: it lacks the tag of an order, or has another
// instance profile than our hosts. People copy tags, and so does what builds images. It is logged once. Of an instance that ends EC2 does not
// show everything, so it is not judged.
func (c *Compute) foreign(i types.Instance, s lifecycle.MachineState) bool {
	if s == lifecycle.MachineEnding || s == lifecycle.MachineGone {
		c.strangers.Delete(sdk.ToString(i.InstanceId))
		return false
	}
	var why string
	switch _, ordered := tagMap(i.Tags)[TagOrder]; {
	case !ordered:
		why = "it has no tag " + TagOrder
	case c.o.InstanceProfile != "" && (i.IamInstanceProfile == nil || path.Base(sdk.ToString(i.IamInstanceProfile.Arn)) != path.Base(c.o.InstanceProfile)):
		why = "its instance profile is not that of our hosts"
	default:
		return false
	}
	if _, said := c.strangers.LoadOrStore(sdk.ToString(i.InstanceId), true); !said {
		c.log.Warn("an instance has our tag and is not ours; it is left alone", logkey.Instance, sdk.ToString(i.InstanceId), logkey.Reason, why)
	}
	return true
}

// tagged is what the tags say of a machine.
func tagged(id string, tags map[string]string) lifecycle.Machine {
	launch, _ := strconv.Atoi(tags[TagLaunch])
	return lifecycle.Machine{
		InstanceID: id, HostKey: hostKey(tags, id), Pool: tags[TagPool], Repository: tags[TagRepository],
		RunID: tags[TagRunID], RequestID: tags[TagRequestID], Launch: launch,
		Hardware: lifecycle.Hardware{ResourceClass: tags[TagResourceClass]}, TemplateVersion: tags[TagTemplateVersion],
		Bypass: tags[TagBypass] == "true",
	}
}

// state is that of the machine. One that is stopped is impaired too, unless its record says that it was to be stopped:
// a person's hand can do that to any host, which does no work then, and does not end by itself.
func state(s *types.InstanceState) (state lifecycle.MachineState, impaired bool) {
	if s == nil {
		return lifecycle.MachinePending, false
	}
	switch s.Name {
	case types.InstanceStateNamePending:
		return lifecycle.MachinePending, false
	case types.InstanceStateNameShuttingDown:
		return lifecycle.MachineEnding, false
	case types.InstanceStateNameStopping:
		return lifecycle.MachineStopping, false
	case types.InstanceStateNameTerminated:
		return lifecycle.MachineGone, false
	case types.InstanceStateNameStopped:
		return lifecycle.MachineStopped, true
	}
	return lifecycle.MachineRunning, false
}

// endReason is why EC2 ended an instance, with what to do about it. An instance that EC2 accepts and then cannot start, as with a key that the
// launch may not use, says so here alone.
func endReason(s lifecycle.MachineState, why *types.StateReason) string {
	if why == nil || s != lifecycle.MachineEnding && s != lifecycle.MachineGone {
		return ""
	}
	code, text := sdk.ToString(why.Code), aws.Reason(sdk.ToString(why.Message))
	switch {
	case text == "":
		text = code
	case !strings.HasPrefix(text, code):
		text = code + ": " + text
	}
	switch {
	case strings.HasPrefix(code, "Client.InvalidKMSKey"), code == "Client.InternalError":
		text += "; allow the launch to use the KMS key of its volumes (docs/iam)"
	case code == "Client.VolumeLimitExceeded":
		text += "; raise the quota of EBS volumes"
	}
	return text
}

// transition is when an instance last changed its state, as EC2 writes it: "User initiated (2026-11-27 12:59:32 GMT)". moto writes UTC.
var transition = regexp.MustCompile(`\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)`)

// endedAt is when an instance that has ended, or ends, began to; zero: EC2 does not say. It is not paid for any longer.
func endedAt(s lifecycle.MachineState, why string) time.Time {
	found := transition.FindStringSubmatch(why)
	if found == nil || s != lifecycle.MachineEnding && s != lifecycle.MachineGone {
		return time.Time{}
	}
	at, err := time.Parse(time.DateTime, found[1])
	if err != nil {
		return time.Time{}
	}
	return at
}

// settling is how long EC2 may not show an instance that it has launched. Its answers are consistent only
// after a while, mostly seconds; one that is not shown for longer is gone.
const settling = 3 * time.Minute

// freshMachine is a machine that this process launched, as the answer described it.
type freshMachine struct {
	machine lifecycle.Machine
	until   time.Time
}

func (c *Compute) remember(machines []lifecycle.Machine) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, f := range c.fresh {
		if now.After(f.until) {
			delete(c.fresh, id)
		}
	}
	for _, m := range machines {
		if _, known := c.fresh[m.InstanceID]; !known {
			c.fresh[m.InstanceID] = freshMachine{m, now.Add(settling)}
		}
	}
}

// recalled is a fresh machine that EC2 does not show.
func (c *Compute) recalled(id string) (lifecycle.Machine, bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.fresh[id]
	return f.machine, ok && !now.After(f.until)
}

// unseen are the fresh machines that are not among those that EC2 shows.
func (c *Compute) unseen(shown []lifecycle.Machine) []lifecycle.Machine {
	now := c.now()
	seen := map[string]bool{}
	for _, m := range shown {
		seen[m.InstanceID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []lifecycle.Machine
	for id, f := range c.fresh {
		if !seen[id] && !now.After(f.until) {
			list = append(list, f.machine)
		}
	}
	return list
}

// The tags of a machine. TagFleet is "our tag": what lacks it is not ours.
const (
	tagPrefix          = "remuda:"
	TagFleet           = aws.TagFleet
	TagPool            = "remuda:pool"
	TagRepository      = "remuda:repository"
	TagRunID           = "remuda:run-id"
	TagRequestID       = "remuda:request-id"
	TagLaunch          = "remuda:launch"
	TagResourceClass   = "remuda:resource-class"
	TagRole            = "remuda:role"
	TagTemplateVersion = "remuda:template-version"
	// TagOrder is a digest of the launch order. It tells an order that was made
	// before, under another configuration, from an order that was never ours.
	TagOrder = "remuda:order"
	// TagBypass is set by operators on a machine that scale-down is to leave
	// alone. It counts with the value "true", exactly.
	TagBypass = "remuda:bypass-removal"
)

// poolTags are on everything that a pool has.
func (c *Compute) poolTags(pool string) map[string]string {
	tags := map[string]string{TagFleet: c.o.Prefix, TagPool: pool}
	if c.o.RoleID != "" {
		tags[TagRole] = c.o.RoleID
	}
	maps.Copy(tags, c.o.Pools[pool].Tags)
	return tags
}

// machineTags are on the machines of a launch, from the moment they exist.
func (c *Compute) machineTags(o lifecycle.LaunchOrder) map[string]string {
	tags := c.poolTags(o.Pool)
	maps.Copy(tags, map[string]string{
		TagRepository: o.Repository, TagRunID: o.RunID, TagRequestID: o.RequestID, TagLaunch: strconv.Itoa(o.Number),
		TagResourceClass: o.ResourceClass, TagTemplateVersion: o.TemplateVersion, TagOrder: digest(o),
	})
	maps.DeleteFunc(tags, func(_, value string) bool { return value == "" })
	return tags
}

// digest tells orders apart.
func digest(o lifecycle.LaunchOrder) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// tagList is in order of the keys: the same tags make the same call.
func tagList(tags map[string]string) []types.Tag {
	list := make([]types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, types.Tag{Key: sdk.String(key), Value: sdk.String(tags[key])})
	}
	return list
}

func tagMap(list []types.Tag) map[string]string {
	tags := map[string]string{}
	for _, tag := range list {
		tags[sdk.ToString(tag.Key)] = sdk.ToString(tag.Value)
	}
	return tags
}

// hostKey is what ${aws:userid} is for credentials of the host's role (design
// section 3), of the role that the host was launched with.
func hostKey(tags map[string]string, instanceID string) string {
	if role := tags[TagRole]; role != "" {
		return role + ":" + instanceID
	}
	return instanceID
}

func byID(a, b lifecycle.Machine) int { return cmp.Compare(a.InstanceID, b.InstanceID) }
