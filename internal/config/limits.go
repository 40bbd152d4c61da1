package config

import (
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Limits bound how many hosts may serve one repository or owner at once. With less than
// its runs ask for, the runs of a repository wait for each other.
type Limits struct {
	// HostsPerRepository is for the runs of one repository; 0: any number.
	HostsPerRepository int `yaml:"hosts_per_repository"`
	// HostsPerOwner is for those of all repositories of one owner; 0: any number.
	HostsPerOwner int `yaml:"hosts_per_owner"`
}

// maxLimited is the largest limit on hosts: all that count against one are in one row,
// and DynamoDB has rows of 400 KB.
const maxLimited = 1000

func (l Limits) validate(at strictyaml.Place) {
	number(at.At("hosts_per_repository"), l.HostsPerRepository, 0, maxLimited)
	number(at.At("hosts_per_owner"), l.HostsPerOwner, 0, maxLimited)
	if l.HostsPerRepository > 0 && l.HostsPerOwner > 0 && l.HostsPerRepository > l.HostsPerOwner {
		at.At("hosts_per_repository").Errorf("is %d, more than hosts_per_owner (%d); write at most as much", l.HostsPerRepository, l.HostsPerOwner)
	}
}

// Policy is the same in the words of the policy.
func (l Limits) Policy() policy.Limits { return policy.Limits(l) }
