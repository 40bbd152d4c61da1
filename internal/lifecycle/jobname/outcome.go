package jobname

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Outcome says how a job ended, after what time and on which runner. GitHub does not say of one that it no longer has.
func Outcome(j lifecycle.Job) string {
	how := cmp.Or(j.Conclusion, "GitHub does not say how")
	if j.RunnerName == "" || j.StartedAt.IsZero() { // one that was canceled before has a start and no runner
		return how + ", before a runner took it"
	}
	return fmt.Sprintf("%s after %s on %s", how, max(0, j.EndedAt.Sub(j.StartedAt)).Round(time.Second), j.RunnerName)
}
