package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// startTime is how long a stopped machine takes from its start to its registration, in the starts of this test.
const startTime = 20 * time.Second

// stoppedGiB is the root volume of the example.
const stoppedGiB = 30

// stoppedHosts are how many are stopped and started together.
var stoppedHosts = []int{1, 10}

// stopped is what hosts use that are stopped and started again. Sweeps are without what one uses that finds nothing.
type stopped struct {
	hosts int
	// order is the due sweep that finds their idle time over, stop the one that has EC2 stop them, confirm one that finds them stopped, and look one
	// of each hour after that.
	order, stop, confirm, look cost.Usage
	// start is a run that has them all started.
	start cost.Usage
}

func measureStopped(t *testing.T) (all []stopped) {
	for _, n := range stoppedHosts {
		t.Run(fmt.Sprint(n), func(t *testing.T) { all = append(all, measureStoppedHosts(t, n)) })
	}
	return all
}

func measureStoppedHosts(t *testing.T, n int) stopped {
	w := newWorld(t)
	w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.StoppedMaximum = n
		o.Pools["default"] = p
	})
	w.provision("1", n, 0, time.Time{})
	w.release("1", n)
	nothing := w.sweep(w.fleet.NewDueSweep())
	sweepAfter := func(d time.Duration) cost.Usage {
		w.pass(d)
		return w.sweep(w.fleet.NewDueSweep()).Plus(nothing.Times(-1))
	}
	policy := lifecycle.DefaultPolicy()
	w.pass(policy.IdleTime)
	w.answer()
	m := stopped{hosts: n, order: sweepAfter(0), stop: sweepAfter(0)}
	m.confirm = sweepAfter(policy.EndPoll)
	w.idleAre("stopped", n, func(r lifecycle.Record) bool { return r.Startable(w.clock.now(), 0) })
	sweepAfter(time.Hour) // the first look writes an event
	m.look = sweepAfter(time.Hour)
	m.start = w.meter.of(func() { w.provision("2", n, n, w.clock.now().Add(startTime)) })
	return m
}

func (m measured) stoppedPart(line liner) {
	line(`
## Stopped hosts

A pool with [stopped](../docs/design.md#stopped-hosts) has EC2 stop hosts whose idle time is over, and a run has them started. EC2 takes about a minute to stop one, and is
asked every %s until it has; each of these looks costs about what one of an hour does. The hosts answer %s after the start. Batched reads are among the calls.

| | hosts | calls | StopInstances, StartInstances | DescribeInstances | reads | writes | SQS | read units | write units | dollars | dollars a host |
|---|---|---|---|---|---|---|---|---|---|---|---|`, duration(lifecycle.DefaultPolicy().EndPoll), duration(startTime))
	for _, s := range m.stopped {
		for _, row := range []struct {
			what string
			used cost.Usage
		}{
			{"a due sweep: the idle time is over", s.order}, {"a due sweep: stop them", s.stop}, {"a due sweep: they are stopped", s.confirm},
			{"an hour, stopped", s.look}, {"a claim: start them", s.start},
		} {
			s.row(line, row.what, row.used)
		}
	}
	m.stoppedHourPart(line)
}

func (s stopped) row(line liner, what string, u cost.Usage) {
	dollars := u.Dollars(prices)
	line("| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", what, s.hosts, count(u.Total()),
		count(u.Calls[call{Service: "ec2", Operation: "StopInstances"}]+u.Calls[call{Service: "ec2", Operation: "StartInstances"}]),
		count(u.Calls[call{Service: "ec2", Operation: "DescribeInstances"}]), count(u.Reads()), count(u.Writes()), count(u.Of("sqs")),
		count(u.ReadUnits), count(u.WriteUnits), money(dollars), money(dollars/float64(s.hosts)))
}

// stoppedHourPart compares hosts that wait for an hour.
func (m measured) stoppedHourPart(line liner) {
	one := m.stopped[0]
	idle, look := m.hour(idleName).Dollars(prices), one.look.Dollars(prices)
	disk := func(gib float64) float64 { return gib * prices.VolumeGiB / monthHours }
	waits, rests := prices.Machine+disk(stoppedGiB)+idle, disk(stoppedGiB)+look
	line(`
An hour of a host of %s with a root volume of %d GiB that waits for a run. One that hibernates has its memory (%s GiB) on the volume, which is larger by that. A
public address costs %s more, which a stopped host does not have.

| | machine | volume | calls | dollars an hour | until the host works for its run |
|---|---|---|---|---|---|`, prices.MachineType, stoppedGiB, count(prices.MachineGiB), money(prices.Address))
	row := func(what string, machine, gib, calls float64, start string) {
		line("| %s | %s | %s | %s | %s | %s |", what, money(machine), money(disk(gib)), money(calls), money(machine+disk(gib)+calls), start)
	}
	row("idle", prices.Machine, stoppedGiB, idle, "seconds: it registers")
	row("stopped", 0, stoppedGiB, look, duration(startTime)+": it boots from a volume that is there, and registers")
	row("hibernated", 0, stoppedGiB+prices.MachineGiB, look, "as one that is stopped: its memory is read in place of a boot")
	row("none, a cold start", 0, 0, 0, duration(boot)+": it is launched, boots from the image, is prepared, and registers")
	line(`
So a stopped host costs %.1f%% of an idle one. These times of starts are the examples that calls are counted with, and none was measured on EC2.
[Others](https://depot.dev/blog/faster-ec2-boot-time) came from 40 seconds to 5 with stopped instances and more.
[EC2 bills](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html) the time in which a machine writes its memory, and not that in which it
stops plainly. It charges a minute at least for each start, which is more than a run of less than %s uses. To be stopped and started costs %s in calls more than a warm claim, and %s of the machine: as much as %s of waiting.`,
		100*rests/waits, duration(time.Minute-startTime), money(m.stopAndStart()), duration(startTime), duration(m.breakEven(waits-rests)))
}

// stopAndStart is what the calls of a host cost that is stopped and started, in dollars, beyond those of a claim of an idle one.
func (m measured) stopAndStart() float64 {
	one := m.stopped[0]
	return one.order.Plus(one.stop).Plus(one.confirm).Plus(one.start).Plus(m.requests[0].claim.Times(-1)).Dollars(prices)
}

// breakEven is how long a host has to be stopped to save what that costs, by the dollars that are saved in an hour.
func (m measured) breakEven(anHour float64) time.Duration {
	hours := (m.stopAndStart() + startTime.Hours()*prices.Machine) / anHour
	return time.Duration(hours * float64(time.Hour)).Round(time.Second)
}

// checkStopped: a host that waits for its run while it is stopped is looked at once an hour, and its start takes one call of EC2.
func (m measured) checkStopped(t *testing.T) {
	t.Helper()
	for _, s := range m.stopped {
		n := float64(s.hosts)
		if got := s.look.Of("ec2"); got != 1 {
			t.Errorf("a look at %d stopped hosts: %v calls of EC2, want 1: %v", s.hosts, got, s.look.Calls)
		}
		for operation, u := range map[string]cost.Usage{"StopInstances": s.stop, "StartInstances": s.start} {
			if got := u.Calls[call{Service: "ec2", Operation: operation}]; got != n {
				t.Errorf("%s of %d hosts: %v calls, want %v", operation, s.hosts, got, n)
			}
		}
		if got := s.start.Calls[call{Service: "ec2", Operation: "CreateFleet"}]; got != 0 {
			t.Errorf("a claim of %d stopped hosts launches: %v", s.hosts, s.start.Calls)
		}
	}
}
