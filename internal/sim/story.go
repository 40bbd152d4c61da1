package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// Story plays a story: a text with commands, and below each group of commands what came of
// them. It returns the text with that part written as it happens now. The fleet, the
// agents and the world are those of the simulated lives, without chance: every draw takes
// the middle of its range, and only the faults happen that the story names. The rules
// hold in it as in every life; a broken one is the error.
//
// A group of commands ends with a line "----"; what came of it ends with an empty line.
// All other text is for readers. See script.command for the commands.
func Story(text string) (told string, err error) {
	l := newStory()
	l.Protect(func() {
		told, err = l.script.play(text)
	})
	if l.Violation != nil {
		return "", fmt.Errorf("%w\n%s", l.Violation, strings.Join(l.Violation.Trace, "\n"))
	}
	return told, err
}

// script drives the world of a story, and has the lines that it tells.
type script struct {
	l     *life
	lines []string
	began time.Time // when the story's clock begins
	// armed are the faults that strike the next calls that they fit.
	armed []armedFault
	// machines are the ids of machines in the order of their launch: the story calls them
	// host-1, host-2 and so on.
	machines []string
	reported map[string]string // what each agent reported last
	// jobPool is set in a story with a job pool.
	jobPool    bool
	deliveries int // of webhooks
	asks       int // requests that callers made
	jobs       int // that were queued
}

// armedFault is a fault that a story has ordered.
type armedFault struct {
	fault engine.Fault  // of those that chance would draw
	crash bool          // else: the process that makes the call dies
	pause time.Duration // else: it is suspended for so long
	call  string        // the call at which it dies or is suspended
	after bool          // when the call has had its effect, rather than before
}

// storySeed is one of a life without limits, warm pools, scale-down, holds and services.
const storySeed = 8

// storyLength bounds how long a story waits for something.
const storyLength = 30 * time.Minute

func newStory() *life {
	l := newLife(engine.Config{Seed: storySeed}.WithDefaults())
	l.script = &script{l: l, reported: map[string]string{}}
	l.Director = l.script
	l.Observe(l.script.observe)
	l.Chaos = false
	l.Intervals.ReadIdle = time.Second
	l.Pools = map[string]fleet.Pool{"default": {
		Name: "default", ResourceClasses: []string{"small"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy(),
	}}
	l.rules.Begin()
	return l
}

// play runs the commands of a text and returns it with what came of them.
func (s *script) play(text string) (string, error) {
	var out, group []string
	playing := true
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case !playing && line != "":
			continue // what came of it before
		case line == "----":
			s.lines, playing = nil, false
			for _, command := range group {
				if err := s.command(command); err != nil {
					return "", fmt.Errorf("%s: %w", command, err)
				}
			}
			group = nil
			out = append(append(out, line), s.lines...)
			continue
		case line == "":
			playing = true
			group = nil
		case !strings.HasPrefix(line, "#"):
			group = append(group, line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n") + "\n", nil
}

// command runs one command:
//
//	replicas 2              starts so many replicas of controld; every story begins so
//	provision run-7         a caller asks for a host for a run
//	release run-7           a caller releases a run
//	job run-7 20s           a job of a run is queued on GitHub and takes so long
//	standby                 the pool has hosts that listen before a run claims them; comes before replicas
//	forget                  GitHub deletes the registration of host-1, and its listener learns of it later
//	job-pool                adds a job pool with two slots; comes before replicas
//	pool-job 101 20s        a job that asks for the pool's label is queued
//	fault <name>            the next chance for this kind of fault is taken: see Fault
//	crash before <call>     the next process that makes this call dies, as by kill -9
//	crash after <call>      it dies when the call has had its effect
//	suspend after <call> 5s the process that makes the call hears its answer so much later
//	in 2s <command>         runs a command later, while another one waits
//	run 30s                 lets everything happen for so long
//	run until <text>        lets everything happen until a line with this text is written
//	quietly <command>       runs a command and forgets what came of it
//	show                    shows the rows of the store, the queue and the registrations
func (s *script) command(line string) error {
	name, rest, _ := strings.Cut(line, " ")
	l := s.l
	switch name {
	case "replicas":
		return s.replicas(rest)
	case "provision":
		s.provision(rest)
	case "release":
		s.release(rest)
	case "job":
		return s.job(rest)
	case "standby":
		p := l.Pools["default"]
		p.Policy.Standby, l.Hot = lifecycle.StandbyListening, true
		l.Pools["default"] = p
	case "forget":
		id := s.machines[0] // host-1
		l.GitHub.Forget(l.Machines[id].Host)
	case "job-pool":
		s.addJobPool()
	case "pool-job":
		return s.poolJob(rest)
	case "fault":
		s.armed = append(s.armed, armedFault{fault: engine.Fault(rest)})
	case "crash", "suspend":
		return s.arm(name, rest)
	case "in":
		delay, later, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(delay)
		l.After(d, func() { engine.Must(s.command(later)) })
		return err
	case "run":
		return s.run(rest)
	case "quietly": // a part that another story tells
		err := s.command(rest)
		s.lines = nil
		return err
	case "show":
		s.show()
	default:
		return errors.New("there is no such command")
	}
	return nil
}

// replicas starts replicas of controld, and the story's clock.
func (s *script) replicas(count string) error {
	n, err := strconv.Atoi(count)
	for i := range n {
		s.l.replicas = append(s.l.replicas, s.l.newReplica(i))
	}
	s.l.RunUntil(s.l.Now.Add(time.Second)) // what they do at first is not told
	s.lines = nil
	s.began = s.l.Now
	return err
}

// replica is the first that lives.
func (s *script) replica() *replica {
	for _, r := range s.l.replicas {
		if r.proc.Alive {
			return r
		}
	}
	panic("no replica lives")
}

func (s *script) provision(runID string) {
	r := s.replica()
	s.asks++
	d := fleet.Demand{
		Repository: world.Repositories[0], RunID: runID, RequestID: "request-" + strconv.Itoa(s.asks),
		Spec: lifecycle.Spec{Pool: "default", ResourceClass: "small", Count: 1, Timeout: 10 * time.Minute},
	}
	s.provisionAt(r, d)
}

// provisionAt asks a replica, and the next one when its connection is lost.
func (s *script) provisionAt(r *replica, d fleet.Demand) {
	s.tell("caller", fmt.Sprintf("asks %s for a host for %s of %s", r.name, d.RunID, d.Repository))
	op := engine.Must1(r.fleet.NewProvision(d))
	r.drive("provision", op, func(err error) {
		switch {
		case errors.Is(err, errConnection):
			s.tell("caller", "loses its connection to "+r.name)
			s.l.After(time.Second, func() { s.provisionAt(s.replica(), d) })
		case err != nil:
			s.tell("caller", "hears: "+err.Error())
		default:
			var names []string
			for _, i := range op.Instances() {
				names = append(names, i.InstanceID)
			}
			s.tell("caller", "hears that the run has "+strings.Join(names, ", "))
		}
	})
}

func (s *script) release(runID string) {
	for _, r := range s.l.replicas {
		if r.proc.Alive && !r.suspended() {
			s.tell("caller", "releases "+runID+" at "+r.name)
			r.drive("release", r.fleet.NewRelease(world.Repositories[0], runID, 0, false), func(err error) {
				if err != nil {
					s.tell("caller", "hears: "+err.Error())
					return
				}
				s.tell("caller", "hears that the run is released")
			})
			return
		}
	}
}

// suspended reports whether an actor of the replica waits within a call.
func (r *replica) suspended() bool { return r.l.Current != nil && r.l.Current.Proc == r.proc }

func (s *script) job(rest string) error {
	runID, length, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(length)
	s.jobs++
	s.l.GitHub.Enqueue(&world.Job{Name: fmt.Sprintf("job-%d", s.jobs), Repository: world.Repositories[0], RunID: runID, Label: runID, Length: d})
	return err
}

// arm orders a crash or a suspension: "before launch", "after launch 5s".
func (s *script) arm(kind, rest string) error {
	when, call, _ := strings.Cut(rest, " ")
	f := armedFault{crash: kind == "crash", call: call, after: when == "after"}
	if kind == "suspend" {
		at := strings.LastIndex(call, " ")
		if at < 0 {
			return errors.New("for how long?")
		}
		d, err := time.ParseDuration(call[at+1:])
		if err != nil {
			return err
		}
		f.call, f.pause = call[:at], d
	}
	s.armed = append(s.armed, f)
	return nil
}

// Strikes implements Director: it reports whether the story has ordered a fault for now.
func (s *script) Strikes(f engine.Fault) bool {
	for i, a := range s.armed {
		if a.fault == f && f != "" {
			s.armed = append(s.armed[:i], s.armed[i+1:]...)
			return true
		}
	}
	return false
}

// Interrupt implements Director: it crashes or suspends an actor at a call, if the story has ordered it. It is
// called before and after the call.
func (s *script) Interrupt(a *engine.Actor, call string) {
	for i := range s.armed {
		f := &s.armed[i]
		if f.call != call {
			continue
		}
		if f.after { // this is before the call; the next one is after it
			f.after = false
			return
		}
		pause, crash := f.pause, f.crash
		s.armed = append(s.armed[:i], s.armed[i+1:]...)
		if crash {
			s.l.Crash(a, call)
		}
		s.l.Preempt(a, call, 1<<30, pause)
		return
	}
}

// run lets time pass: for a duration, or until a line with a text is written.
func (s *script) run(rest string) error {
	text, until := strings.CutPrefix(rest, "until ")
	if !until {
		d, err := time.ParseDuration(rest)
		s.l.RunUntil(s.l.Now.Add(d))
		return err
	}
	seen := len(s.lines)
	for limit := s.l.Now.Add(storyLength); s.l.Next(limit); {
		for ; seen < len(s.lines); seen++ {
			if strings.Contains(s.lines[seen], text) {
				return nil
			}
		}
	}
	return fmt.Errorf("it did not happen within %s", storyLength)
}
