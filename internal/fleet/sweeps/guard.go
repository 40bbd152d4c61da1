package sweeps

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// massGuard keeps a sweep from ending anything because too many failed at once.
type massGuard struct {
	// name is the label of the metric.
	name string
	code lifecycle.ReasonCode
	// what is wrong with those that it keeps, in sentences.
	what string
}

var (
	silenceGuard    = massGuard{"silence", lifecycle.ReasonManySilent, "hosts are silent at once"}
	unrecordedGuard = massGuard{"unrecorded", lifecycle.ReasonManyUnrecorded, "machines have no record or a restored one"}
)

// show says that a guard keeps held of all; 0: none. Operators see it in the log and the history when it begins and
// when it is over, and as a metric in between.
func (sw *Sweeps) show(g massGuard, j *op.Recorder, held, all int, now time.Time) {
	if j.Dry {
		return
	}
	sw.Observer.Guarded(g.name, held)
	last, _ := sw.guarding.Swap(g.name, held > 0)
	before, _ := last.(bool)
	e := lifecycle.Event{At: now, Action: lifecycle.ActionKeep, Code: g.code}
	switch {
	case held > 0 && !before:
		sw.Log.Error("many failed at once; none is ended for it", logkey.Guard, g.name, logkey.Count, held, logkey.Hosts, all)
		e.Reason = fmt.Sprintf("%d of %d %s, so none is ended for it", held, all, g.what)
	case held == 0 && before:
		sw.Log.Info("guard is off", logkey.Guard, g.name)
		e.Reason = "the guard is off: it held because many " + g.what
	default:
		return
	}
	j.Record(e)
}
