package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/policy"
)

func TestScaleDownIsRead(t *testing.T) {
	if c := parse(t, ""); c.ScaleDown != nil {
		t.Errorf("without a section: %+v", c.ScaleDown)
	}
	least := parse(t, "scale_down: {}\n").ScaleDown
	if d := cmp.Diff(&config.ScaleDown{MinimumRunning: 5 * time.Minute, BootTime: 5 * time.Minute}, least); d != "" {
		t.Error(d)
	}
	c := parse(t, `
scale_down:
  minimum_running_time: 10m
  boot_time: 7m
  idle_confirmation: 3m
  idle:
    - {cron: "* * 9-17 * * 1-5", time_zone: Europe/Amsterdam, idle_count: 4, eviction_strategy: newest_first}
    - {cron: "* * * * 6"}
`)
	want := &config.ScaleDown{
		MinimumRunning: 10 * time.Minute, BootTime: 7 * time.Minute, IdleConfirmation: 3 * time.Minute,
		Idle: []config.IdlePeriod{
			{Cron: "* * 9-17 * * 1-5", TimeZone: "Europe/Amsterdam", IdleCount: 4, Eviction: policy.EvictNewest},
			{Cron: "* * * * 6", TimeZone: "UTC", Eviction: policy.EvictOldest},
		},
	}
	if d := cmp.Diff(want, c.ScaleDown); d != "" {
		t.Error(d)
	}
	p, err := c.ScaleDown.Policy()
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2026, 1, 5, 8, 30, 0, 0, time.UTC) // half past nine in Amsterdam
	period, ok := policy.Now(p.Idle, monday)
	if !ok || period.IdleCount != 4 || period.Eviction != policy.EvictNewest {
		t.Errorf("on Monday morning: %+v, %t", period, ok)
	}
	if p.MinimumRunning["linux"] != 10*time.Minute || p.BootTime["linux"] != 7*time.Minute || p.IdleConfirmation != 3*time.Minute {
		t.Errorf("policy: %+v", p)
	}
}

func TestScaleDownRules(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"cron":     {`{idle: [{cron: "* * * *"}]}`, `scale_down.idle[0].cron: is wrong: "* * * *" has 4 fields`},
		"no cron":  {`{idle: [{idle_count: 2}]}`, `scale_down.idle[0].cron: is wrong`},
		"zone":     {`{idle: [{cron: "* * * * *"}, {cron: "* * * * *", time_zone: Mars/Base}]}`, `scale_down.idle[1].time_zone: is wrong: "Mars/Base" is no time zone`},
		"count":    {`{idle: [{cron: "* * * * *", idle_count: -1}]}`, `scale_down.idle[0].idle_count: is -1; write a number from 0 to 10000`},
		"eviction": {`{idle: [{cron: "* * * * *", eviction_strategy: oldest}]}`, `scale_down.idle[0].eviction_strategy: `},
		"boot":     {`{boot_time: 1s}`, `scale_down.boot_time: is 1s; write a duration from 10s to 24h0m0s`},
		"negative": {`{minimum_running_time: -1m}`, `scale_down.minimum_running_time: `},
		"confirm":  {`{idle_confirmation: 25h}`, `scale_down.idle_confirmation: is 25h0m0s`},
		"sweep":    {"{}\nsweeps: {scale_down: 1s}", `sweeps.scale_down: is 1s`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"scale_down: "+test.yaml+"\n", test.want) })
	}
}

func refuses(t *testing.T, text, want string) {
	t.Helper()
	_, err := config.Parse("f", []byte(text))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
