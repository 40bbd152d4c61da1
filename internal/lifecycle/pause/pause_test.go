package pause_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestPause(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]pause.Pause{
		"pool ci is paused since 2026-03-02T12:00:00Z":               {Pool: "ci", Since: noon},
		"pool ci is paused since 2026-03-02T12:00:00Z by ann":        {Pool: "ci", Since: noon, By: "ann"},
		"pool ci is paused since 2026-03-02T12:00:00Z (an audit)":    {Pool: "ci", Since: noon, Reason: "an audit\nof all"},
		"pool ci is paused since 2026-03-02T12:00:00Z by ann (test)": {Pool: "ci", Since: noon.In(time.FixedZone("", 3600)), By: "ann", Reason: "test"},
	} {
		if got := p.String(); got != want || !p.On() {
			t.Errorf("%q (on %t), want %q", got, p.On(), want)
		}
	}
}

func TestAPauseThatIsOver(t *testing.T) {
	t.Parallel()
	p := pause.Pause{Pool: "ci", From: noon, Until: noon.Add(time.Hour)}
	const over = "pool ci was paused from 2026-03-02T12:00:00Z to 2026-03-02T13:00:00Z"
	for since, want := range map[time.Time]string{{}: "", noon.Add(-time.Hour): over, p.Until.Add(-1): over, p.Until: "", p.Until.Add(1): ""} {
		if got := p.Over(since); got != want || p.On() {
			t.Errorf("for what waits since %s: %q, want %q", since, got, want)
		}
	}
}
