package ec2

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The tags of a machine. TagFleet is "our tag": what lacks it is not ours.
const (
	tagPrefix          = "remuda:"
	TagFleet           = "remuda:fleet"
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
