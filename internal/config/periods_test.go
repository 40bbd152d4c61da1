package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// Everything wrong with a period is reported at once, each with its place.
func TestAllThatIsWrongWithAPeriod(t *testing.T) {
	for place, text := range map[string]string{
		"pools.x.warm.schedules[0]": `pools: {x: {warm: {schedules: [{cron: "61 * * * *", time_zone: Mars/Base}]}}}`,
		"scale_down.idle[0]":        `scale_down: {idle: [{cron: "61 * * * *", time_zone: Mars/Base}]}`,
	} {
		_, err := config.Parse("f", []byte(token+text))
		if err == nil {
			t.Fatalf("%s: no error", place)
		}
		for _, want := range []string{
			place + ".cron: is wrong: minute 61: must be 0 to 59", place + `.time_zone: is wrong: "Mars/Base" is no time zone`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

func TestWarningsOfPeriods(t *testing.T) {
	c := parse(t, `
scale_down:
  idle:
    - {cron: "* * * * *"}
    - {cron: "* 8 * * *", time_zone: Europe/Amsterdam}
pools:
  a:
    warm: {schedules: [{cron: "0 8 * * *", idle_count: 2}, {cron: "* 8-17 * * 1-5", idle_count: 1}, {cron: "* 9 * * 1", idle_count: 3}]}
  aa:
    warm: {schedules: [{cron: "0 * 8-17 * * *", idle_count: 2}, {cron: "0-29 * * * * 6", idle_count: 1}]}
  b:
    warm: {schedules: [{cron: "* 8-9 * * 1-5", idle_count: 2}, {cron: "* 8-17 * * 1-5", idle_count: 1}]}
`)
	var got []string
	for _, w := range c.Warnings() {
		if strings.Contains(w, "[") {
			got = append(got, w)
		}
	}
	want := []string{
		"scale_down.idle[1] (* 8 * * *) never counts: [0] (* * * * *) comes before it, and holds whenever it does",
		"pools.a.warm.schedules[0] (0 8 * * *) holds for a minute at most each time; write * for the minute if all of the hour is meant",
		"pools.a.warm.schedules[2] (* 9 * * 1) never counts: [1] (* 8-17 * * 1-5) comes before it, and holds whenever it does",
		"pools.aa.warm.schedules[0] (0 * 8-17 * * *) holds for a second each time; write * for the second if all of the minute is meant",
		"pools.aa.warm.schedules[1] (0-29 * * * * 6) holds for 30s at most each time; write * for the second if all of the minute is meant",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}
