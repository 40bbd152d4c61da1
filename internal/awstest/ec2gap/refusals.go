package ec2gap

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
)

// refusal is why EC2 would not launch instances from a template, which moto does; nil: it would. An instant fleet has such reasons in its Errors
// (aws/karpenter-provider-aws#5283, #1527).
func (f *fleet) refusal(data node) *ec2Error {
	images, failure := askTree(f.r, f.forward, "DescribeImages", url.Values{"ImageId.1": {data.at("imageId").Text}})
	if failure != nil {
		return failure
	}
	return cmp.Or(checkRootVolume(data, images.at("imagesSet", "item")), checkVolumes(data), checkTagKeys(f.form, data), checkUserData(data))
}

// checkRootVolume refuses a root volume that is smaller than the image's snapshot (scylladb/scylladb#6999).
func checkRootVolume(data, image node) *ec2Error {
	root := image.at("rootDeviceName").Text
	for _, own := range image.at("blockDeviceMapping").Nodes {
		least := own.at("ebs", "volumeSize").integer()
		for _, m := range data.at("blockDeviceMappingSet").Nodes {
			size := m.at("ebs", "volumeSize").integer()
			if own.at("deviceName").Text == root && m.at("deviceName").Text == root && size > 0 && size < least {
				return &ec2Error{"InvalidBlockDeviceMapping", fmt.Sprintf("Volume of size %dGB is smaller than snapshot '%s', expect size >= %dGB",
					size, own.at("ebs", "snapshotId").Text, least)}
			}
		}
	}
	return nil
}

// What a gp3 volume may have for its size (EBS User Guide, "General Purpose SSD volumes"), and what it has without being asked.
const (
	iopsPerGiB = 500
	iopsPerMiB = 4 // of throughput in a second: 0.25 MiB/s for each IOPS
	iopsOfAny  = 3000
)

// checkVolumes refuses gp3 volumes with more IOPS or throughput than their size has. The sentence about throughput is of runs-on/runs-on#260;
// that about IOPS is not EC2's own.
func checkVolumes(data node) *ec2Error {
	for _, m := range data.at("blockDeviceMappingSet").Nodes {
		volume := m.at("ebs")
		size, iops, throughput := volume.at("volumeSize").integer(), volume.at("iops").integer(), volume.at("throughput").integer()
		if volume.at("volumeType").Text != "gp3" {
			continue
		}
		if size > 0 && iops > max(iopsPerGiB*size, iopsOfAny) {
			return &ec2Error{"InvalidParameterValue", fmt.Sprintf("Iops to volume size ratio of %d is too high; maximum is %d IOPS per GiB",
				iops/size, iopsPerGiB)}
		}
		if has := cmp.Or(iops, iopsOfAny); throughput*iopsPerMiB > has {
			return &ec2Error{"InvalidParameterValue", fmt.Sprintf("Throughput (MiBps) to iops ratio of %f is too high; maximum is 0.250000 MiBps per iops",
				float64(throughput)/float64(has))}
		}
	}
	return nil
}

// metadataKey is a tag key that can be in the instance metadata (EC2 User Guide, "View tags for your EC2 instances using instance metadata").
var metadataKey = regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// checkTagKeys refuses instance tags, of the call and of the template, that cannot be in the metadata while tags are there. The sentence is of
// aws/karpenter-provider-aws#1527.
func checkTagKeys(form url.Values, data node) *ec2Error {
	if data.at("metadataOptions", "instanceMetadataTags").Text != "enabled" {
		return nil
	}
	var keys []string
	for _, spec := range each(form, "TagSpecification") {
		for _, tag := range each(spec, "Tag") {
			if spec.Get("ResourceType") == "instance" {
				keys = append(keys, tag.Get("Key"))
			}
		}
	}
	for _, spec := range data.at("tagSpecificationSet").Nodes {
		for _, tag := range spec.at("tagSet").Nodes {
			if spec.at("resourceType").Text == "instance" {
				keys = append(keys, tag.at("key").Text)
			}
		}
	}
	for _, key := range keys {
		if !metadataKey.MatchString(key) || key == "." || key == ".." || key == "_index" {
			return &ec2Error{"InvalidParameterValue", "'" + key + `' is not a valid tag key. Tag keys must match pattern ` +
				`([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')`}
		}
	}
	return nil
}

// maxUserData is how many bytes user data may have before base64 (EC2 User Guide, "Run commands when you launch an EC2 instance with user data
// input"). The sentence is of runs-on/runs-on#9.
const maxUserData = 16384

func checkUserData(data node) *ec2Error {
	raw, err := base64.StdEncoding.DecodeString(data.at("userData").Text)
	if err == nil && len(raw) > maxUserData {
		return &ec2Error{"InvalidParameterValue", "User data is limited to 16384 bytes"}
	}
	return nil
}

// checkTagSpecifications refuses two specifications of one resource type, with the words of skypilot-org/skypilot#10627.
func checkTagSpecifications(form url.Values) *ec2Error {
	seen := map[string]bool{}
	for _, spec := range each(form, "TagSpecification") {
		resource := spec.Get("ResourceType")
		if seen[resource] {
			return &ec2Error{"InvalidParameterValue", "The same resource type may not be specified more than once in tag specifications"}
		}
		seen[resource] = true
	}
	return nil
}

// integer is the number that an element has; 0: it has none.
func (n node) integer() int {
	i, err := strconv.Atoi(n.Text)
	if err != nil {
		return 0
	}
	return i
}
