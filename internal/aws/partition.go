package aws

import "strings"

// partition is a part of AWS with accounts of its own.
type partition struct {
	prefix string // of the names of its regions
	name   string // in ARNs
	suffix string // of the names of its hosts
}

// partitions are those of botocore's partitions.json, except the one of all other regions, and that of a template's stack.
var partitions = []partition{
	{templateRegion, "${AWS::Partition}", "${AWS::URLSuffix}"},
	{"cn-", "aws-cn", "amazonaws.com.cn"},
	{"us-gov-", "aws-us-gov", "amazonaws.com"},
	{"eusc-", "aws-eusc", "amazonaws.eu"},
	{"us-iso-", "aws-iso", "c2s.ic.gov"},
	{"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
	{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
	{"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
}

// commercial is the partition of all other regions.
const commercial = "amazonaws.com"

// partitionOf returns the partition of a region.
func partitionOf(region string) partition {
	for _, p := range partitions {
		if strings.HasPrefix(region, p.prefix) {
			return p
		}
	}
	return partition{name: "aws", suffix: commercial}
}

// ec2 is what EC2 may be called where a role is passed to it. Outside the commercial partition some regions take one name and some
// the other: AWS's own policies for China list both.
func (p partition) ec2() any {
	if p.suffix == commercial {
		return "ec2." + commercial
	}
	return []string{"ec2." + commercial, "ec2." + p.suffix}
}
