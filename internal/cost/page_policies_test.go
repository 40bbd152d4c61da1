package cost_test

import (
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// How often the sweeps of policies come, and workers are heard.
const (
	warmSweeps  = 120                                    // an hour
	workSweeps  = int(10 * time.Hour / model.JobSilence) // an hour: in a tenth of the time that makes a worker silent
	serviceLook = time.Minute
	workerBeat  = 30 * time.Second
)

// policies is what warm pools, services and their jobs use.
type policies struct {
	warm     []warmed
	services map[int]cost.Usage
	work     []worked
}

func (m measured) policiesPart(line liner) {
	m.warmPart(line)
	m.servicesPart(line)
	m.workPart(line)
}

func (m measured) warmPart(line liner) {
	line(`
## Warm pools

Launching fresh hosts, pooling them once they are prepared (%s later), and a claim of all of them. A fresh host that waits costs what an idle
one does.

| | hosts | calls | of them EC2 | read units | write units | dollars | dollars a host |
|---|---|---|---|---|---|---|---|`, duration(boot))
	for _, w := range m.policies.warm {
		for _, row := range []struct {
			what string
			used cost.Usage
		}{{"launch", w.launch}, {"into the pool", w.pooled}, {"claim", w.claim}} {
			dollars := row.used.Dollars(prices)
			line("| %s | %d | %s | %s | %s | %s | %s | %s |", row.what, w.hosts, count(row.used.Total()), count(row.used.Of("ec2")),
				count(row.used.ReadUnits), count(row.used.WriteUnits), money(dollars), money(dollars/float64(w.hosts)))
		}
	}
	line(`
The sweep comes %d times an hour. Here it finds all hosts ready:

| fresh hosts | calls | read units | dollars an hour | dollars a month |
|---|---|---|---|---|`, warmSweeps)
	for _, w := range m.policies.warm {
		hourly := w.rest.Times(warmSweeps)
		line("| %d | %s | %s | %s | %s |", w.hosts, count(w.rest.Total()), count(w.rest.ReadUnits), money(hourly.Dollars(prices)),
			money(hourly.Times(monthHours).Dollars(prices)))
	}
}

func (m measured) servicesPart(line liner) {
	line(`
## Services

One look a minute at ECS services with controld's own queue, when nothing waits and nothing runs.

| services | calls | of them ECS | read units | write units | dollars an hour | dollars a month |
|---|---|---|---|---|---|---|`)
	for _, n := range servicesAtRest {
		u := m.policies.services[n]
		hourly := u.Times(float64(time.Hour / serviceLook))
		line("| %d | %s | %s | %s | %s | %s | %s |", n, count(u.Total()), count(u.Of("ecs")), count(u.ReadUnits), count(u.WriteUnits),
			money(hourly.Dollars(prices)), money(hourly.Times(monthHours).Dollars(prices)))
	}
}

func (m measured) workPart(line liner) {
	line(`
## Jobs of workers

One job of %d KiB, call by call.

| | reads | writes | read units | write units | dollars |
|---|---|---|---|---|---|`, payload>>10)
	for _, w := range m.policies.work {
		line("| %s | %s | %s | %s | %s | %s |", w.what, count(w.used.Reads()), count(w.used.Writes()),
			count(w.used.ReadUnits), count(w.used.WriteUnits), money(w.used.Dollars(prices)))
	}
	beats := float64(jobTime / workerBeat)
	work := m.workCall(submitted).Plus(m.workCall(claimed)).Plus(m.workCall(heard).Times(beats)).Plus(m.workCall(finished))
	log := m.workCall(loggedLate).Times(beats)
	asks := m.workCall(asksInVain).Times(float64(time.Hour / workerBeat))
	sweeps := m.workCall(workSweep).Times(float64(workSweeps))
	line(`
A job of %s with a heartbeat every %s and such a log costs %s. As many pieces of a log of that length cost %s
more, since the kept log is written as a whole. A worker that asks every %s without success costs %s an hour, and the sweep for silent
workers (%d times an hour) %s an hour.`,
		duration(jobTime), duration(workerBeat), money(work.Dollars(prices)), money(log.Dollars(prices)), duration(workerBeat),
		money(asks.Dollars(prices)), workSweeps, money(sweeps.Dollars(prices)))
}

func (m measured) workCall(what string) cost.Usage {
	for _, w := range m.policies.work {
		if w.what == what {
			return w.used
		}
	}
	panic("no call " + what)
}
