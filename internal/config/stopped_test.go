package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestFreshStoppedHosts: the room for used ones is what the most of the fresh ones leave.
func TestFreshStoppedHosts(t *testing.T) {
	c := parse(t, `
pools:
  default: {stopped: {maximum: 3}}
  once: {reuse: none, stopped: {maximum: 2, minimum: 2}}
  morning: {stopped: {maximum: 5, time: 8h, minimum: 1, schedules: [{cron: "* 8-9 * * 1-5", idle_count: 4}]}}
`)
	if c.Pools["default"].Stopped.Fresh() != nil {
		t.Error("without a minimum hosts are launched to be stopped")
	}
	types := []string{"c*", "m*", "r*"}
	want := &config.Warm{
		ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: types, MinimumIdle: 1, Lead: 5 * time.Minute, WarmTime: 8 * time.Hour,
		Schedules: []config.WarmPeriod{{Cron: "* 8-9 * * 1-5", TimeZone: "UTC", IdleCount: 4}},
	}
	if d := cmp.Diff(want, c.Pools["morning"].Stopped.Fresh()); d != "" {
		t.Error(d)
	}
	for pool, of := range map[string]struct {
		used  int
		fresh bool
	}{"default": {3, false}, "once": {0, true}, "morning": {1, true}} {
		if p := c.Policy(pool); p.StoppedMaximum != of.used || p.StopsFresh != of.fresh || !p.MayStop() {
			t.Errorf("pool %s has room for %d used hosts, fresh ones %t; want %+v", pool, p.StoppedMaximum, p.StopsFresh, of)
		}
	}
}

func TestStoppedRules(t *testing.T) {
	for name, test := range map[string]struct{ pool, want string }{
		"no reuse":          {`{reuse: none, stopped: {maximum: 1}}`, `pools.x.stopped: means nothing with reuse: none, where no host waits for another run`},
		"above its maximum": {`{stopped: {maximum: 1, minimum: 2}}`, `pools.x.stopped.minimum: is 2, more than the maximum of stopped hosts (1)`},
		"above the pool's": {`{maximum: 1, stopped: {maximum: 3, schedules: [{cron: "* * * * *", idle_count: 2}]}}`,
			`pools.x.stopped.schedules[0].idle_count: is 2, more than the pool's maximum (1)`},
		"cron":  {`{stopped: {maximum: 1, schedules: [{cron: "61 * * * *"}]}}`, `pools.x.stopped.schedules[0].cron: is wrong: minute 61: must be 0 to 59`},
		"class": {`{stopped: {maximum: 1, minimum: 1, resource_class: huge}}`, `pools.x.stopped.resource_class: is "huge", and not of this pool`},
		"type":  {`{stopped: {maximum: 1, minimum: 1, instance_types: ["C6"]}}`, `pools.x.stopped.instance_types[0]: is "C6"`},
		"age":   {`{max_age: 9m, stopped: {maximum: 1, minimum: 1}}`, `pools.x.stopped.minimum: needs a max_age of at least 10m0s`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"pools:\n  x: "+test.pool+"\n", test.want) })
	}
}

// TestHibernateRules: hosts are hibernated only where EC2 can do it for all that the pool launches.
func TestHibernateRules(t *testing.T) {
	const here, inAWS = "", "aws: {region: eu-west-1, instance_profile: h, ec2: {images: {x86_64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678]}}\n"
	for name, test := range map[string]struct{ where, pool, want string }{
		"here": {here, `{usage_classes: [on-demand], stopped: {maximum: 1, hibernate: true}}`, `pools.x.stopped.hibernate: is for hosts in EC2`},
		"spot": {inAWS, `{resource_classes: [large], stopped: {maximum: 1, hibernate: true}}`, `pools.x.stopped.hibernate: is for pools without spot hosts`},
		"new root volumes": {inAWS, `{resource_classes: [large], usage_classes: [on-demand], reset: root-volume, stopped: {maximum: 1, hibernate: true}}`,
			`pools.x.stopped.hibernate: is refused with reset: root-volume`},
		"no room": {inAWS, `{resource_classes: [large, 8xlarge], usage_classes: [on-demand], stopped: {maximum: 1, hibernate: true}}`,
			`class 8xlarge has at least 65536 MiB; write a root_volume_gib of at least 72`},
		"too much memory": {inAWS + "resource_classes: {huge: {cpu: 64, memory_mib: 153601}}\n", `{resource_classes: [huge], usage_classes: [on-demand], ec2: {root_volume_gib: 500}, stopped: {maximum: 1, hibernate: true}}`,
			`pools.x.stopped.hibernate: is for hosts with at most 153600 MiB of memory, and those of class huge have 153601`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+test.where+"pools:\n  x: "+test.pool+"\n", test.want) })
	}
	c := parse(t, inAWS+`
pools:
  small: {resource_classes: [large], usage_classes: [on-demand], stopped: {maximum: 1, hibernate: true}}
  large: {usage_classes: [on-demand], ec2: {root_volume_gib: 500}, stopped: {maximum: 1, hibernate: true}}
  plain: {stopped: {maximum: 1}}
`)
	for pool, want := range map[string]int{"small": 42 << 10, "large": 150 << 10, "plain": 0, "default": 0} {
		if got := c.HibernateMiB(pool); got != want || c.Policy(pool).Hibernates != (want > 0) {
			t.Errorf("pool %s hibernates hosts of at most %d MiB, want %d", pool, got, want)
		}
	}
}
