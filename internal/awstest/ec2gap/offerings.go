package ec2gap

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// offering is an instance type in a zone, as an override of a fleet allows it.
type offering struct {
	catalogue.Type
	zone, subnet string
	usage        lifecycle.UsageClass
	template     url.Values // the specification of its launch template
}

// burstable are types that the catalogue leaves out.
var burstable = []catalogue.Type{
	{Name: "t3.medium", CPU: 2, MemoryMiB: 4096, Arch: catalogue.ArchX86},
	{Name: "t3.large", CPU: 2, MemoryMiB: 8192, Arch: catalogue.ArchX86},
	{Name: "t4g.medium", CPU: 2, MemoryMiB: 4096, Arch: catalogue.ArchArm},
	{Name: "t4g.large", CPU: 2, MemoryMiB: 8192, Arch: catalogue.ArchArm},
}

// typesFor are those that an override's requirements allow.
func typesFor(override url.Values, arch string) []catalogue.Type {
	required := under(override, "InstanceRequirements")
	if len(required) == 0 {
		return []catalogue.Type{{Name: override.Get("InstanceType")}}
	}
	all := catalogue.All()
	if required.Get("BurstablePerformance") == "included" {
		all = append(all, burstable...)
	}
	allowed := words(required, "AllowedInstanceType")
	within := func(name string, n int) bool {
		return n >= number(required, name+".Min", 0) && n <= number(required, name+".Max", 1<<30)
	}
	var fit []catalogue.Type
	for _, t := range all {
		named := len(allowed) == 0 || slices.ContainsFunc(allowed, func(p string) bool { return catalogue.Match(p, t.Name) })
		if named && t.Arch == arch && within("VCpuCount", t.CPU) && within("MemoryMiB", t.MemoryMiB) {
			fit = append(fit, t)
		}
	}
	return fit
}

// maxRequirements is how many InstanceRequirements a call may carry: see the EC2 User Guide, "Specify attributes for instance type
// selection for EC2 Fleet", and for the answer osbuild/osbuild-composer#3946.
const maxRequirements = 4

// checkTags refuses a fleet that does not tag all that its instances consist of. The policy of a fleet (docs/iam) demands the tag of the fleet
// on each, and whether EC2 asks it about the tags of the call or also those of the template is not documented.
func checkTags(form url.Values) *ec2Error {
	for _, resource := range []string{"fleet", "instance", "volume", "network-interface"} {
		tagged := func(spec url.Values) bool { return spec.Get("ResourceType") == resource && spec.Get("Tag.1.Key") != "" }
		if !slices.ContainsFunc(each(form, "TagSpecification"), tagged) {
			return &ec2Error{"UnauthorizedOperation", "You are not authorized to perform this operation. User is not authorized to perform: " +
				"ec2:CreateFleet on resource: arn:aws:ec2:us-east-1:123456789012:" + resource + "/* because no identity-based policy allows it."}
		}
	}
	return nil
}

// ofTemplates are the fields of a call that only the launch template may have.
var ofTemplates = regexp.MustCompile(`(^|\.)(ImageId|SnapshotId|SecurityGroup(Id)?\.[0-9]+)$`)

// checkNamed refuses a launch that names an image, a snapshot or a security group itself. The policy of a fleet (docs/iam) lets only the launch
// template name them.
func checkNamed(form url.Values) *ec2Error {
	for field := range form {
		if ofTemplates.MatchString(field) {
			return &ec2Error{"UnauthorizedOperation", "You are not authorized to perform this operation. User is not authorized to perform: " +
				"ec2:RunInstances on what " + field + " names because no identity-based policy allows it."}
		}
	}
	return nil
}

// checkRequirements refuses a fleet with too many requirements, as EC2 does.
func checkRequirements(form url.Values) *ec2Error {
	n := 0
	for _, config := range each(form, "LaunchTemplateConfigs") {
		for _, override := range each(config, "Overrides") {
			if len(under(override, "InstanceRequirements")) > 0 {
				n++
			}
		}
	}
	if n > maxRequirements {
		return &ec2Error{"InvalidParameterValue",
			fmt.Sprintf("Your request contains more than the maximum allowed number of InstanceRequirements (%d)", maxRequirements)}
	}
	return nil
}

// checkForm is what EC2 refuses of the launch of any kind.
func checkForm(form url.Values) *ec2Error {
	return cmp.Or(checkTagSpecifications(form), checkNamed(form))
}

// offerings of a fleet, type by type.
func offerings(r *http.Request, forward forward, form url.Values, usage lifecycle.UsageClass) ([]offering, *ec2Error) {
	if err := cmp.Or(checkTags(form), checkForm(form), checkRequirements(form)); err != nil {
		return nil, err
	}
	var list []offering
	for _, config := range each(form, "LaunchTemplateConfigs") {
		template := under(config, "LaunchTemplateSpecification")
		arch, err := archOf(r, forward, template)
		if err != nil {
			return nil, err
		}
		for _, override := range each(config, "Overrides") {
			subnet := override.Get("SubnetId")
			zone, err := zoneOf(r, forward, subnet)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(list, func(o offering) bool { return o.zone == zone && o.subnet != subnet }) {
				// As in aws-samples/aws-plugin-for-slurm#19 and github-aws-runners/terraform-aws-github-runner#5297.
				return nil, &ec2Error{"InvalidFleetConfig", "The fleet configuration contains duplicate instance pools."}
			}
			fit := typesFor(override, arch)
			if override.Get("InstanceRequirements.RequireHibernateSupport") == "true" {
				can, err := canHibernate(r, forward)
				if err != nil {
					return nil, err
				}
				fit = slices.DeleteFunc(fit, func(t catalogue.Type) bool { return !can[t.Name] })
			}
			for _, t := range fit {
				list = append(list, offering{t, zone, subnet, usage, template})
			}
		}
	}
	// The cheapest type in all zones, then the next: zones share the load.
	slices.SortStableFunc(list, func(a, b offering) int { return cheaper(a.Type, b.Type) })
	return list, nil
}

// cheaper: the smaller is.
func cheaper(a, b catalogue.Type) int {
	return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(a.Name, b.Name))
}

// archOf the image of a launch template's version.
func archOf(r *http.Request, forward forward, template url.Values) (string, *ec2Error) {
	versions, err := askTree(r, forward, "DescribeLaunchTemplateVersions", url.Values{
		"LaunchTemplateName": {template.Get("LaunchTemplateName")}, "LaunchTemplateVersion.1": {template.Get("Version")},
	})
	if err != nil {
		return "", err
	}
	image := versions.at("launchTemplateVersionSet", "item", "launchTemplateData", "imageId").Text
	images, err := askTree(r, forward, "DescribeImages", url.Values{"ImageId.1": {image}})
	if err != nil {
		return "", err
	}
	if len(images.at("imagesSet").Nodes) == 0 {
		return "", &ec2Error{"InvalidAMIID.NotFound", "The image id '" + image + "' does not exist"}
	}
	return images.at("imagesSet", "item", "architecture").Text, nil
}

func zoneOf(r *http.Request, forward forward, subnet string) (string, *ec2Error) {
	subnets, err := askTree(r, forward, "DescribeSubnets", url.Values{"SubnetId.1": {subnet}})
	if err != nil {
		return "", err
	}
	return subnets.at("subnetSet", "item", "availabilityZone").Text, nil
}

// living are the instances that count against limits, as offerings.
func living(r *http.Request, forward forward) ([]offering, *ec2Error) {
	answer, err := askTree(r, forward, "DescribeInstances", url.Values{
		"Filter.1.Name": {"instance-state-name"}, "Filter.1.Value.1": {"pending"}, "Filter.1.Value.2": {"running"}, "MaxResults": {"100000"},
	})
	if err != nil {
		return nil, err
	}
	var list []offering
	answer.change("instancesSet", func(set *node) {
		for _, i := range set.Nodes {
			o := offering{Type: catalogue.Type{Name: i.at("instanceType").Text}, zone: i.at("placement", "availabilityZone").Text, usage: lifecycle.UsageOnDemand}
			if strings.Contains(i.at("instanceLifecycle").Text, "spot") {
				o.usage = lifecycle.UsageSpot
			}
			list = append(list, o)
		}
	})
	return list, nil
}
