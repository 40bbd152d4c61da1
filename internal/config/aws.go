package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// AWS is where a fleet lives that is not on this machine. Credentials come from
// where the AWS SDK looks for them, never from here.
type AWS struct {
	// Region, such as eu-west-1; empty: as the SDK finds it.
	Region string `yaml:"region"`
	// Prefix begins the names of all that this fleet has in the account. Two
	// fleets in one account and region need two.
	Prefix string `yaml:"prefix"`
	// InstanceProfile is the profile of the hosts, whose role gives each the
	// right to its own two rows (docs/iam).
	InstanceProfile string `yaml:"instance_profile"`
	// Notices has controld hear what EC2 announces of machines, by a queue that a
	// rule of EventBridge writes to.
	Notices bool `yaml:"notices"`
	// Tags are on all that Remuda makes in the account, for cost allocation and for organizations that demand them.
	Tags map[string]string `yaml:"tags"`
	EC2  EC2               `yaml:"ec2"`
}

// SetDefaults names what most fleets do not.
func (a *AWS) SetDefaults() {
	a.Prefix = defaultPrefix
	a.EC2.RootVolumeGiB, a.EC2.IOPS, a.EC2.ThroughputMiB = defaultRootVolumeGiB, defaultIOPS, defaultThroughput
}

// The architectures, as EC2 spells them.
const (
	archX86 = "x86_64"
	archARM = "arm64"
)

const (
	defaultPrefix = "remuda"
	// defaultRootVolumeGiB holds the runner, a tool cache and some checkouts.
	defaultRootVolumeGiB = 50
	// defaultIOPS and defaultThroughput, in MiB/s, are what a gp3 volume has at no extra price.
	defaultIOPS       = 3000
	defaultThroughput = 125
)

// EC2 is how hosts are launched. In a pool, a value that is left out is that of AWS.EC2.
type EC2 struct {
	// Images are the ids of the machine images, by architecture: x86_64, arm64. A
	// pool launches only types of the architectures that it has images for.
	Images map[string]string `yaml:"images"`
	// Subnets are where hosts are launched, each in its zone. More zones, fewer shortages.
	Subnets        []string `yaml:"subnets"`
	SecurityGroups []string `yaml:"security_groups"`
	// RootVolumeGiB is the size of the encrypted root volume.
	RootVolumeGiB int `yaml:"root_volume_gib"`
	// IOPS and ThroughputMiB, a second, are what it is provisioned with.
	IOPS          int `yaml:"root_volume_iops"`
	ThroughputMiB int `yaml:"root_volume_throughput"`
	// KMSKeyID is the key that encrypts it: an id, an alias or the ARN of either. Empty: the account's default for EBS.
	KMSKeyID string `yaml:"kms_key_id"`
	// Burstable allows types such as t3, which are slow once their credits are spent.
	Burstable *bool `yaml:"burstable"`
	// CPUBaseline is an instance family, such as c6i: types whose CPU is slower are not launched. Empty: any CPU will do.
	CPUBaseline string `yaml:"cpu_baseline"`
	// Tags are added to what is of EC2, beside those of AWS.Tags, and count where both have a key.
	Tags map[string]string `yaml:"tags"`
}

// PoolEC2 is how the hosts of a pool are launched. There must be an AWS section.
func (c *Config) PoolEC2(pool string) EC2 {
	e, own := c.AWS.EC2, c.Pools[pool].EC2
	tags := maps.Clone(c.AWS.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, e.Tags)
	e.Tags = tags
	if own == nil {
		return e
	}
	if own.Images != nil {
		e.Images = own.Images
	}
	if own.Subnets != nil {
		e.Subnets = own.Subnets
	}
	if own.SecurityGroups != nil {
		e.SecurityGroups = own.SecurityGroups
	}
	e.RootVolumeGiB, e.Burstable = cmp.Or(own.RootVolumeGiB, e.RootVolumeGiB), cmp.Or(own.Burstable, e.Burstable)
	e.IOPS, e.ThroughputMiB = cmp.Or(own.IOPS, e.IOPS), cmp.Or(own.ThroughputMiB, e.ThroughputMiB)
	e.KMSKeyID, e.CPUBaseline = cmp.Or(own.KMSKeyID, e.KMSKeyID), cmp.Or(own.CPUBaseline, e.CPUBaseline)
	maps.Copy(e.Tags, own.Tags)
	return e
}

// The id of a KMS key, with mrk- for one of several regions, and the name of an alias.
const (
	kmsID    = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}`
	kmsAlias = `alias/[A-Za-z0-9/_-]{1,250}`
)

var (
	regionName  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`)
	prefixName  = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`) // with the longest class it must fit the 80 characters of a queue's name
	profileName = regexp.MustCompile(`^[A-Za-z0-9+=,.@_-]{1,128}$`)
	imageID     = regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`)
	subnetID    = regexp.MustCompile(`^subnet-[0-9a-f]{8,17}$`)
	groupID     = regexp.MustCompile(`^sg-[0-9a-f]{8,17}$`)
	kmsKeyID    = regexp.MustCompile(`^(` + kmsID + `|` + kmsAlias + `|arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:(key/(` + kmsID + `)|` + kmsAlias + `))$`)
	familyName  = regexp.MustCompile(`^[a-z]+[0-9]+[a-z0-9-]*$`)
)

// Bounds of a root volume: less does not hold a runner, more no gp3 has.
const (
	minRootVolumeGiB = 8
	maxRootVolumeGiB = 16384
)

// Bounds of what a gp3 volume is provisioned with ("LaunchTemplateEbsBlockDeviceRequest" of EC2's API, "General Purpose SSD volumes"): it has at
// most 500 IOPS for each GiB, and 0.25 MiB/s for each of the IOPS.
const (
	minIOPS, maxIOPS             = defaultIOPS, 80_000
	minThroughput, maxThroughput = defaultThroughput, 2000
	iopsPerGiB                   = 500
	iopsPerMiB                   = 4
)

// noBaseline are families that EC2 does not compare ("PerformanceFactorReferenceRequest"). CreateFleet refuses them.
var noBaseline = strings.Fields("c1 g3 g3s hpc7g m1 m2 mac1 mac2 mac2-m1ultra mac2-m2 mac2-m2pro p3dn p4d p5 t1 " +
	"u-12tb1 u-18tb1 u-24tb1 u-3tb1 u-6tb1 u-9tb1 u7i-12tb u7in-16tb u7in-24tb u7in-32tb")

func (c *Config) validateAWS(root strictyaml.Place) {
	a, at := c.AWS, root.At("aws")
	a.validateRecords(root)
	if !profileName.MatchString(a.InstanceProfile) {
		at.At("instance_profile").Errorf("is %.80q; write the name of the hosts' instance profile, without its path", a.InstanceProfile)
	}
	a.EC2.validate(at.At("ec2"))
	a.EC2.validateKey(at.At("ec2", "kms_key_id"), a.Region)
	for name := range c.Pools {
		pool := root.At("pools", name)
		if own := c.Pools[name].EC2; own != nil {
			own.validate(pool.At("ec2"))
			own.validateKey(pool.At("ec2", "kms_key_id"), a.Region)
		}
		c.validateComplete(at.At("ec2"), pool, name)
	}
}

// validateRecords are the rules of where the rows are.
func (a *AWS) validateRecords(root strictyaml.Place) {
	at := root.At("aws")
	for _, local := range []string{"store", "compute"} {
		if root.At(local).Written() {
			root.At(local).Errorf("is there beside aws, which keeps records and hosts in AWS; remove one of them")
		}
	}
	at.At("region").Match(a.Region, regionName, "a region such as eu-west-1")
	if !prefixName.MatchString(a.Prefix) {
		at.At("prefix").Errorf("is %.80q; write 1 to 20 of a-z 0-9 and -, a letter first", a.Prefix)
	}
	validateTags(at.At("tags"), a.Tags)
	validateTagsOfTables(at.At("tags"), a.Tags)
}

// validateComplete: every pool must be able to launch.
func (c *Config) validateComplete(common, pool strictyaml.Place, name string) {
	e := c.PoolEC2(name)
	missing := func(key string) strictyaml.Place {
		if c.Pools[name].EC2 != nil {
			return pool.At("ec2", key)
		}
		return common.At(key)
	}
	if len(e.Images) == 0 {
		missing("images").Errorf("is missing, and pool %s needs it; write an image id for x86_64, arm64 or both", name)
	}
	if len(e.Subnets) == 0 {
		missing("subnets").Errorf("is missing, and pool %s needs it; write at least one subnet", name)
	}
	if len(e.SecurityGroups) == 0 {
		missing("security_groups").Errorf("is missing, and pool %s needs it; write at least one security group", name)
	}
	if e.RootVolumeGiB < minRootVolumeGiB || e.RootVolumeGiB > maxRootVolumeGiB {
		missing("root_volume_gib").Number(e.RootVolumeGiB, minRootVolumeGiB, maxRootVolumeGiB)
	}
	if len(e.Tags) > maxTags && len(c.AWS.Tags) <= maxTags {
		missing("tags").Errorf("make it %d tags of pool %s, with those of aws; write at most %d together", len(e.Tags), name, maxTags)
	}
	e.validateVolume(missing)
}

// validateVolume checks what the root volume of a pool is provisioned with, however that comes together.
func (e EC2) validateVolume(at func(key string) strictyaml.Place) {
	iops, throughput := at("root_volume_iops"), at("root_volume_throughput")
	switch {
	case e.IOPS < minIOPS || e.IOPS > maxIOPS:
		iops.Number(e.IOPS, minIOPS, maxIOPS)
	case e.IOPS > minIOPS && e.IOPS > iopsPerGiB*e.RootVolumeGiB:
		iops.Errorf("is %d, and a volume of %d GiB has at most %d; write less, or a larger root_volume_gib", e.IOPS, e.RootVolumeGiB, max(iopsPerGiB*e.RootVolumeGiB, minIOPS))
	}
	switch {
	case e.ThroughputMiB < minThroughput || e.ThroughputMiB > maxThroughput:
		throughput.Number(e.ThroughputMiB, minThroughput, maxThroughput)
	case iopsPerMiB*e.ThroughputMiB > e.IOPS:
		throughput.Errorf("is %d, and needs 4 IOPS for each MiB/s; write at most %d, or a root_volume_iops of %d", e.ThroughputMiB, e.IOPS/iopsPerMiB, iopsPerMiB*e.ThroughputMiB)
	}
}

// validate checks what is written.
func (e EC2) validate(at strictyaml.Place) {
	if f := e.CPUBaseline; f != "" && (!familyName.MatchString(f) || slices.Contains(noBaseline, f)) {
		at.At("cpu_baseline").Errorf("is %.80q; write a family of instance types that EC2 can compare, such as c6i", f)
	}
	for arch, image := range e.Images {
		switch {
		case arch != archX86 && arch != archARM:
			at.At("images", arch).Errorf("is no architecture; write %s or %s", archX86, archARM)
		case !imageID.MatchString(image):
			at.At("images", arch).Errorf("is %.80q; write the id of an image such as ami-0123456789abcdef0", image)
		}
	}
	words(at.At("subnets"), e.Subnets, subnetID, "the id of a subnet such as subnet-0123456789abcdef0")
	words(at.At("security_groups"), e.SecurityGroups, groupID, "the id of a security group such as sg-0123456789abcdef0")
	validateTags(at.At("tags"), e.Tags)
}

// validateKey checks the key of the volumes. EC2 accepts a launch with a key that it cannot use, and ends the instance at once, so what can be
// known of the key before is said here.
func (e EC2) validateKey(at strictyaml.Place, region string) {
	if e.KMSKeyID == "" {
		return
	}
	parts := kmsKeyID.FindStringSubmatch(e.KMSKeyID)
	switch {
	case parts == nil:
		at.Errorf("is %.80q; write the id of a KMS key, an alias such as alias/ci, or the ARN of either", e.KMSKeyID)
	case parts[2] != "" && region != "" && parts[2] != region:
		at.Errorf("is a key of %s, and the fleet is in %s; write a key of that region", parts[2], region)
	}
}
