package config_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/config"
)

// Everything that is wrong with a pool is said at once, so that one correction is enough.
func TestProblemsOfAPoolAreSaidTogether(t *testing.T) {
	for text, want := range map[string][]string{
		"{standby: listening, reuse: none, default_labels: true, jobs: {labels: [small], maximum: 1}}": {
			"pools.default.standby: is listening, and with reuse: none no host waits for another run, and each host of a job pool registers for one job, " +
				"and with default_labels GitHub would give jobs to a host that no run has claimed; leave it out, or write clean",
		},
		"{reuse: none, max_uses: 2, max_age: 48h, drift: ignore, idle_time: 2m}": {
			"pools.default.max_uses: means nothing with reuse: none",
			"pools.default.max_age: means nothing with reuse: none",
			"pools.default.drift: means nothing with reuse: none",
			"pools.default.idle_time: means nothing with reuse: none",
		},
	} {
		_, err := config.Parse("f", []byte(token+"pools: {default: "+text+"}"))
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got:\n%v\nwithout:\n%s", text, err, w)
			}
		}
	}
}
