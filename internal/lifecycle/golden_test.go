package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const goldenHead = `# What Decide answers to every combination of facts (TestDecideGolden writes this file).
# Under each host: the answers, and below each the combinations that get it; an axis that is not
# named makes no difference. A host with a comma in its name shows only what is not as without it.
# A threshold that is ahead is so by 1m40s on a created, claimed or releasing host.

`

// TestDecideGolden keeps the answer of Decide to every combination of facts as
// a decision table that is reviewed as a diff.
func TestDecideGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString(goldenHead)
	plain := map[string][]string{}
	before, _ := os.ReadFile(filepath.Join("testdata", "decide.golden"))
	for _, host := range hostNames() {
		begin := b.Len()
		base, _, variant := strings.Cut(host, ",")
		blocks := answersOf(host)
		if !variant {
			plain[host] = blocks
		}
		fmt.Fprintf(&b, "== %s ==\n", host)
		if variant {
			blocks = slices.DeleteFunc(blocks, func(b string) bool { return slices.Contains(plain[base], b) })
		}
		if len(blocks) == 0 {
			blocks = []string{"as without it\n"}
		}
		b.WriteString(strings.Join(blocks, ""))
		b.WriteByte('\n')
		// What differs at the first host is known long before the last one.
		t.Run(host, func(t *testing.T) {
			if !*update && !strings.Contains(string(before), b.String()[begin:]) {
				t.Error("is not as in the file")
			}
		})
	}
	golden(t, "decide.golden", b.String())
}

// answersOf returns a block of text for each answer to a host.
func answersOf(host string) []string {
	c := newCover(host)
	rows := c.rows()
	blocks := make([]string, len(c.answers))
	for n, answer := range c.answers {
		blocks[n] = outcome(answer) + "\n"
		for _, row := range rows[n] {
			blocks[n] += "    " + row + "\n"
		}
	}
	return blocks
}

func outcome(d lifecycle.Decision) string {
	text := string(d.Action)
	if d.Busy {
		text += " busy"
	}
	if d.HostFault {
		text += " fault"
	}
	if d.Deregister {
		text += " deregister"
	}
	if d.LostJob {
		text += " lost-job"
	}
	if d.SetLabels {
		text += " set-labels"
	}
	if d.StandsBy {
		text += " stands-by"
	}
	if d.StandbyFailed {
		text += " standby-failed"
	}
	if d.LosesRun {
		text += " leaves"
	}
	if !d.CheckAt.IsZero() {
		text += " look+" + short(d.CheckAt.Sub(now))
	}
	return fmt.Sprintf("%s [%s]: %s", text, d.Code, d.Reason)
}

// short prints a duration without its zero units.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
