package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestWarmIsRead(t *testing.T) {
	if c := parse(t, ""); c.Pools["default"].Warm != nil || c.Pools["default"].Maximum != nil {
		t.Errorf("without a section: %+v", c.Pools["default"])
	}
	c := parse(t, `
pools:
  default: {warm: {}}
  morning:
    maximum: 30
    warm:
      resource_class: xlarge
      usage_class: spot
      allow_on_demand_fallback: true
      minimum_idle: 1
      lead: 5m
      warm_time: 2h
      schedules:
        - {cron: "* 8-9 * * 1-5", time_zone: Asia/Kolkata, idle_count: 20}
        - {cron: "* 8-17 * * 1-5", idle_count: 30}
`)
	types := []string{"c*", "m*", "r*"}
	least := &config.Warm{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: types, Lead: 3 * time.Minute, WarmTime: time.Hour}
	if d := cmp.Diff(least, c.Pools["default"].Warm); d != "" {
		t.Error(d)
	}
	want := &config.Warm{
		ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceTypes: types, AllowOnDemandFallback: true,
		MinimumIdle: 1, Lead: 5 * time.Minute, WarmTime: 2 * time.Hour,
		Schedules: []config.WarmPeriod{
			{Cron: "* 8-9 * * 1-5", TimeZone: "Asia/Kolkata", IdleCount: 20}, {Cron: "* 8-17 * * 1-5", TimeZone: "UTC", IdleCount: 30},
		},
	}
	if d := cmp.Diff(want, c.Pools["morning"].Warm); d != "" {
		t.Error(d)
	}
	if p := c.Policy("morning"); p.WarmTime != 2*time.Hour || p.IdleTime != 5*time.Minute || *c.Pools["morning"].Maximum != 30 {
		t.Errorf("policy: %+v", p)
	}
	p, err := want.Policy()
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for after, n := range map[time.Duration]int{
		0: 1, 2*time.Hour + 25*time.Minute: 20, 4*time.Hour + 31*time.Minute: 1, 7*time.Hour + 55*time.Minute: 30, 18 * time.Hour: 1,
	} {
		if got, _ := p.Wanted(monday.Add(after)); got != n {
			t.Errorf("%s after midnight %d hosts are wanted, want %d", after, got, n)
		}
	}
}

func TestWarmRules(t *testing.T) {
	for name, test := range map[string]struct{ pool, want string }{
		"class":             {`{warm: {resource_class: huge}}`, `pools.x.warm.resource_class: is "huge", and not of this pool; write one of 16xlarge, 2xlarge`},
		"usage class":       {`{usage_classes: [on-demand], warm: {usage_class: spot}}`, `pools.x.warm.usage_class: is spot, and not of this pool; write on-demand`},
		"fallback":          {`{warm: {allow_on_demand_fallback: true}}`, `pools.x.warm.allow_on_demand_fallback: means nothing with usage_class: on-demand`},
		"types":             {`{warm: {instance_types: []}}`, `pools.x.warm.instance_types: is empty`},
		"type":              {`{warm: {instance_types: ["C6"]}}`, `pools.x.warm.instance_types[0]: is "C6"`},
		"negative":          {`{warm: {minimum_idle: -1}}`, `pools.x.warm.minimum_idle: is -1; write a number from 0 to 1000`},
		"above the maximum": {`{maximum: 4, warm: {minimum_idle: 5}}`, `pools.x.warm.minimum_idle: is 5, more than the pool's maximum (4)`},
		"above none":        {`{maximum: 0, warm: {minimum_idle: 1}}`, `pools.x.warm.minimum_idle: is 1, more than the pool's maximum (0)`},
		"schedule above it": {`{maximum: 4, warm: {schedules: [{cron: "* * * * *", idle_count: 5}]}}`, `pools.x.warm.schedules[0].idle_count: is 5, more than the pool's maximum (4)`},
		"negative schedule": {`{warm: {schedules: [{cron: "* * * * *", idle_count: -2}]}}`, `pools.x.warm.schedules[0].idle_count: is -2`},
		"cron":              {`{warm: {schedules: [{cron: "* * * * *"}, {cron: "61 * * * *"}]}}`, `pools.x.warm.schedules[1].cron: is wrong: minute 61: must be 0 to 59`},
		"no such day":       {`{warm: {schedules: [{cron: "* * 30 2 *"}]}}`, `pools.x.warm.schedules[0].cron: is wrong: "* * 30 2 *" never holds`},
		"zone":              {`{warm: {schedules: [{cron: "* * * * *", time_zone: Mars/Base}]}}`, `pools.x.warm.schedules[0].time_zone: is wrong: "Mars/Base"`},
		"lead":              {`{warm: {lead: 2h, warm_time: 10h}}`, `pools.x.warm.lead: is 2h0m0s; write a duration from 0s to 1h0m0s`},
		"lead and time":     {`{warm: {lead: 6m, warm_time: 11m}}`, `pools.x.warm.lead: is 6m0s, more than half of warm_time (11m0s)`},
		"lead and age":      {`{max_age: 5m, warm: {lead: 3m}}`, `pools.x.warm.lead: is 3m0s, more than half of the pool's max_age (5m0s)`},
		"time":              {`{warm: {warm_time: 6m}}`, `pools.x.warm.warm_time: is 6m0s, less than timeouts.creation (10m0s)`},
		"maximum":           {`{maximum: -1}`, `pools.x.maximum: is -1`},
		"sweep":             {"{}\nsweeps: {warm: 1ms}", `sweeps.warm: is 1ms`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"pools:\n  x: "+test.pool+"\n", test.want) })
	}
}
