package reset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/retry"
)

// A job with root's rights can leave a process that neither the end of its run nor its user gives away: in a scope, in a
// login by su, in the control group of a service. So every process must be accounted for: it was there before the first
// run, or a unit of the image has started it, or it belongs to a login that such a unit made. A worker that outlives the
// restart of its unit is accounted for by an earlier verification, which saw it descend from the unit. What root has moved
// there is not.

const (
	// settleLimit is how long a process may take that is about to end by itself: the shim of a container, a helper of
	// systemd, a command of an operator.
	settleLimit = 3 * time.Second
	// logoutLimit is the same for what logind keeps of a user after the last logout: UserStopDelaySec= is 10 seconds.
	logoutLimit = 15 * time.Second
	// settlePause is the time between two looks.
	settlePause = 50 * time.Millisecond
)

// unaccounted returns the processes that nothing accounts for. known are the others, except those in logins, which may
// end.
func (i imageUnits) unaccounted(ctx context.Context, base baseline) (rest []process, known []procID, err error) {
	all, err := i.plan.allProcesses()
	if err != nil {
		return nil, nil, err
	}
	mains := sync.OnceValues(func() (map[int]string, error) { return i.manager.mainPIDs(ctx) })
	ours := map[int]process{}
	for _, h := range all {
		before := h.pid == 1 || slices.Contains(base.Processes, h.id())
		if !before {
			if now, err := i.isAccountedFor(ctx, h, base, mains); err != nil {
				return nil, nil, err
			} else if !now {
				continue
			}
		}
		ours[h.pid] = h
		if before || h.login == "" {
			known = append(known, h.id())
		}
	}
	logins := i.plan.accountedLogins(all, ours)
	return slices.DeleteFunc(all, func(h process) bool {
		_, counts := ours[h.pid]
		return counts || logins[h.login] || h.descendsFrom(ours, func(a process) bool { return a.unit == h.unit })
	}), known, nil
}

// descendsFrom reports whether a process has one of these among its ancestors. systemd does not count, since every orphan
// becomes its child.
func (h process) descendsFrom(ours map[int]process, like func(process) bool) bool {
	return slices.ContainsFunc(h.ancestry, func(pid int) bool {
		a, ok := ours[pid]
		return ok && pid > 1 && pid != h.pid && like(a)
	})
}

// isAccountedFor reports whether a service that may run accounts for a process.
func (i imageUnits) isAccountedFor(ctx context.Context, h process, base baseline, mains func() (map[int]string, error)) (bool, error) {
	if ok, err := i.isOfKnownService(ctx, h, base); ok || err != nil || !i.plan.isSessionLeader(h) {
		return ok, err
	}
	return i.isLeaderOfKnownService(ctx, h, base, mains)
}

// isOfKnownService reports whether a service that may run has started a process in its control group.
func (i imageUnits) isOfKnownService(ctx context.Context, h process, base baseline) (bool, error) {
	if !strings.HasSuffix(h.unit, ".service") {
		return false, nil
	}
	u, err := i.manager.unit(ctx, h.unit)
	if err != nil || !u.owns(h) {
		return false, err
	}
	return i.isKnown(u, base)
}

// isKnown reports whether a service may run: it is of the image, our own, or a transient unit that the baseline has. The
// managers of users start anything on behalf of those, so they count only with their logins.
func (i imageUnits) isKnown(u unit, base baseline) (bool, error) {
	if strings.HasPrefix(u.name, "user@") {
		return false, nil
	}
	if matches(i.plan.OwnUnits, u.name) || slices.Contains(base.Transients, u.name) {
		return true, nil
	}
	files, err := i.files()
	return err == nil && i.plan.isOfImage(u, files), err
}

// isSessionLeader reports whether a process may be the main process of a login service (getty, one connection of sshd)
// that logind has moved into a session scope: there it is a direct child of systemd.
func (p Plan) isSessionLeader(h process) bool {
	return p.inOtherLogin(h) && strings.HasSuffix(h.unit, ".scope") && len(h.ancestry) == 1
}

// isLeaderOfKnownService reports whether it is, of a service that may run: the main process with which the service was
// started. A process that became the main process later does not count, since root can tell systemd to take any.
func (i imageUnits) isLeaderOfKnownService(ctx context.Context, h process, base baseline, mains func() (map[int]string, error)) (bool, error) {
	services, err := mains()
	if err != nil || services[h.pid] == "" {
		return false, err
	}
	u, err := i.manager.unit(ctx, services[h.pid])
	if err != nil || u.mainPID != h.pid || !u.spawnedAtStart(h) {
		return false, err
	}
	return i.isKnown(u, base)
}

// inOtherLogin reports whether a process is in the login of another user than that of the runs, whose logins end with them.
func (p Plan) inOtherLogin(h process) bool {
	return h.login != "" && h.login != "user-"+strconv.Itoa(p.UID)+".slice"
}

// accountedLogins returns the slices of users with a genuine login: one of the processes there descends from a service that
// is accounted for, such as that of ssh. Those of a login by su in a job do not, and what a login leaves behind does not.
func (p Plan) accountedLogins(all []process, ours map[int]process) map[string]bool {
	logins := map[string]bool{}
	for _, h := range all {
		if p.inOtherLogin(h) && h.descendsFrom(ours, func(process) bool { return true }) {
			logins[h.login] = true
		}
	}
	return logins
}

// finding is something that runs and is not accounted for.
type finding struct {
	sentence string
	// inLogin says that logind may be about to end it.
	inLogin bool
}

// findUnaccounted looks once. known are the processes that are accounted for.
func (i imageUnits) findUnaccounted(ctx context.Context, base baseline) (found []finding, known []procID, err error) {
	names, err := i.plan.transients()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if !slices.Contains(base.Transients, name) {
			found = append(found, finding{sentence: fmt.Sprintf("unit %s was made by a call: stop it, or make it before the host is prepared", name)})
		}
	}
	rest, known, err := i.unaccounted(ctx, base)
	for _, h := range rest {
		found = append(found, finding{
			sentence: describeOwner([]process{h}) + " runs and did not before: end it, or start it before the host is prepared",
			inLogin:  strings.HasPrefix(h.unit, "user@"),
		})
	}
	return found, known, err
}

// limit is how long it may take to end by itself.
func (s finding) limit() time.Duration {
	if s.inLogin {
		return logoutLimit
	}
	return settleLimit
}

// checkUnaccounted looks until it has found nothing proc.QuietScans times in a row, or until a finding has had its time to
// end. Each finding has its own time, since a process that ends may start another, as a login does that cleans up after
// itself. All together have the sum of both limits, so that a process that is replaced again and again is not waited for
// endlessly. known is returned for a host without findings.
func (p Plan) checkUnaccounted(ctx context.Context, d *Findings, m manager, base baseline) (known []procID) {
	start, since := time.Now(), map[string]time.Time{}
	for quiet := 0; quiet < proc.QuietScans; {
		found, now, err := p.imageUnits(m, base).findUnaccounted(ctx, base)
		if d.addErr(err) {
			return nil
		}
		if len(found) == 0 {
			quiet, known = quiet+1, now
			continue
		}
		quiet = 0
		late := time.Since(start) > settleLimit+logoutLimit
		for _, s := range found {
			if _, seen := since[s.sentence]; !seen {
				since[s.sentence] = time.Now()
			}
			late = late || time.Since(since[s.sentence]) > s.limit()
		}
		if late {
			for _, s := range found {
				d.add("%s", s.sentence)
			}
			return nil
		}
		if d.addErr(retry.Sleep(ctx, settlePause)) {
			return nil
		}
	}
	return known
}
