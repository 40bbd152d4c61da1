package slate

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

// A job with root's rights can leave a process where neither its run's end nor its user tells of it: in a scope, in a login
// by su, in the control group of a service. So every process must be accounted for: it was there before the first run, or a
// unit of the image has started it, or it belongs to somebody who is logged in by such a unit. A worker that outlives the restart
// of its unit is told from what root has put there by a check before, which has seen it come from the unit.

const (
	// settleLimit is how long what ends by itself may take: the shim of a container, a helper of systemd, a command of
	// an operator.
	settleLimit = 3 * time.Second
	// logoutLimit is the same for what logind keeps of a user after his last logout: UserStopDelaySec= is 10 seconds.
	logoutLimit = 15 * time.Second
	// settlePause is between two looks.
	settlePause = 50 * time.Millisecond
)

// birth tells a process from all others of a boot.
type birth struct {
	PID  int           `json:"pid"`
	Born time.Duration `json:"born"` // since the boot
}

func (h holder) birth() birth { return birth{h.pid, h.born} }

// everyone are the living processes but the kernel's own.
func (p Plan) everyone() ([]holder, error) {
	pids, err := p.proc().PIDs()
	if err != nil {
		return nil, err
	}
	var all []holder
	for _, pid := range pids {
		h, err := p.holder(pid)
		if proc.Gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if !h.kernel && !h.dead {
			all = append(all, h)
		}
	}
	return all, nil
}

// births are what a baseline has of the processes.
func (p Plan) births() ([]birth, error) {
	all, err := p.everyone()
	var births []birth
	for _, h := range all {
		births = append(births, h.birth())
	}
	return births, err
}

// strangers are the processes that nobody accounts for. The others are known, but for those in logins, which may end.
func (i image) strangers(ctx context.Context, base baseline) (strangers []holder, known []birth, err error) {
	all, err := i.plan.everyone()
	if err != nil {
		return nil, nil, err
	}
	mains := sync.OnceValues(func() (map[int]string, error) { return i.manager.mains(ctx) })
	ours := map[int]holder{}
	for _, h := range all {
		before := h.pid == 1 || slices.Contains(base.Processes, h.birth())
		if !before {
			now, err := i.accountsFor(ctx, h, base, mains)
			if err != nil {
				return nil, nil, err
			}
			if !now {
				continue
			}
		}
		ours[h.pid] = h
		if before || h.login == "" {
			known = append(known, h.birth())
		}
	}
	logins := i.plan.logins(all, ours)
	return slices.DeleteFunc(all, func(h holder) bool {
		_, counts := ours[h.pid]
		return counts || logins[h.login] || h.comesFrom(ours, func(a holder) bool { return a.unit == h.unit })
	}), known, nil
}

// comesFrom reports whether a process has one of these among its parents, but for systemd, whose child every orphan is.
func (h holder) comesFrom(ours map[int]holder, like func(holder) bool) bool {
	return slices.ContainsFunc(h.line, func(pid int) bool {
		a, ok := ours[pid]
		return ok && pid > 1 && pid != h.pid && like(a)
	})
}

// accountsFor reports whether a process is there by a service that may be there.
func (i image) accountsFor(ctx context.Context, h holder, base baseline, mains func() (map[int]string, error)) (bool, error) {
	if ok, err := i.started(ctx, h, base); ok || err != nil || !i.plan.leads(h) {
		return ok, err
	}
	return i.entered(ctx, h, base, mains)
}

// started reports whether a process is of a service that may be there.
func (i image) started(ctx context.Context, h holder, base baseline) (bool, error) {
	if !strings.HasSuffix(h.unit, ".service") {
		return false, nil
	}
	u, err := i.manager.unit(ctx, h.unit)
	if err != nil || !u.owns(h) {
		return false, err
	}
	return i.mayBe(u, base)
}

// mayBe reports whether a service may be there: it is of the image, our own, or made by a call that the baseline has. The managers
// of users start whatever those say, so they count with their logins only.
func (i image) mayBe(u unit, base baseline) (bool, error) {
	if strings.HasPrefix(u.name, "user@") {
		return false, nil
	}
	if matches(i.plan.OwnUnits, u.name) || slices.Contains(base.Transients, u.name) {
		return true, nil
	}
	files, err := i.files()
	return err == nil && i.plan.hasFiles(u, files), err
}

// leads reports whether a process may be one as which a service has gone on in a login, as that of a console does, or that of
// one connection with ssh: a child of systemd there.
func (p Plan) leads(h holder) bool {
	return p.ofLogin(h) && strings.HasSuffix(h.unit, ".scope") && len(h.line) == 1
}

// entered reports whether it is one, of a service that may be there: the main process, with which the service was started.
// What is called the main process later may be anybody's, since root can tell systemd so.
func (i image) entered(ctx context.Context, h holder, base baseline, mains func() (map[int]string, error)) (bool, error) {
	services, err := mains()
	if err != nil || services[h.pid] == "" {
		return false, err
	}
	u, err := i.manager.unit(ctx, services[h.pid])
	if err != nil || u.mainPID != h.pid || !u.bore(h) {
		return false, err
	}
	return i.mayBe(u, base)
}

// ofLogin reports whether a process is in the login of somebody but the user, whose logins end with his runs.
func (p Plan) ofLogin(h holder) bool {
	return h.login != "" && h.login != "user-"+strconv.Itoa(p.UID)+".slice"
}

// logins are the slices of users who are logged in: one of the processes there comes from a service that is accounted for,
// such as that of ssh. A login by su in a job does not, and what is left of a login after its end does not either.
func (p Plan) logins(all []holder, ours map[int]holder) map[string]bool {
	logins := map[string]bool{}
	for _, h := range all {
		if p.ofLogin(h) && h.comesFrom(ours, func(holder) bool { return true }) {
			logins[h.login] = true
		}
	}
	return logins
}

// strange is a sentence about something that runs and nobody accounts for.
type strange struct {
	sentence string
	// login is said of what logind may be about to end.
	login bool
}

// strange looks once. It says too which processes are known.
func (i image) strange(ctx context.Context, base baseline) (found []strange, known []birth, err error) {
	names, err := i.plan.transients()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range added(names, base.Transients) {
		found = append(found, strange{
			sentence: fmt.Sprintf("unit %s was made by a call: stop it, or make it before the host is prepared", name),
		})
	}
	strangers, known, err := i.strangers(ctx, base)
	for _, h := range strangers {
		found = append(found, strange{
			sentence: describe([]holder{h}) + " runs and did not before: end it, or start it before the host is prepared",
			login:    strings.HasPrefix(h.unit, "user@"),
		})
	}
	return found, known, err
}

// limit is how long it may take to end by itself.
func (s strange) limit() time.Duration {
	if s.login {
		return logoutLimit
	}
	return settleLimit
}

// checkStrange looks until it has found nothing twice in a row, or something it finds has had its time to end. Each has its
// own, since what ends may start something else, as a login does that tidies up behind itself; and all together have that of
// the two, so that nothing that begins anew each time is waited for without end. Who is known is said of a host without doubts.
func (p Plan) checkStrange(ctx context.Context, d *Doubts, m manager, base baseline) (known []birth) {
	start, since := time.Now(), map[string]time.Time{}
	for quiet := 0; quiet < proc.QuietScans; {
		found, now, err := p.image(m, base).strange(ctx, base)
		if d.found(err) {
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
		if d.found(retry.Sleep(ctx, settlePause)) {
			return nil
		}
	}
	return known
}
