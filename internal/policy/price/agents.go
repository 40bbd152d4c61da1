package price

import (
	"math"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// What the agent of a host calls, by docs/cost.md: it reads its record every half second, and while a job runs every five, half a read unit
// each, and writes its report every 15 seconds. Nothing counts the calls of agents: their reports would grow with it.
const (
	readsAnHour    = 7200
	readsOfAJob    = 720
	reportsAnHour  = 240
	unitsOfAReport = 1
)

// AgentCalls estimates what the agents of hosts called of DynamoDB in some time. It takes hosts for busy with a job while a run has them, and
// for awake while they are idle: hosts that rest or listen ahead of need read less, and those that wait for a job of their run more.
func AgentCalls(t meter.Times) meter.Calls {
	reads := int64(math.Round((t.Idle+t.Boot+t.Clean).Hours()*readsAnHour + t.Busy.Hours()*readsOfAJob))
	reports := int64(math.Round(t.Sum().Hours() * reportsAnHour))
	return meter.Calls{Service: "dynamodb", Requests: reads + reports, HalfReads: reads, Writes: reports * unitsOfAReport}
}

// AgentReads and AgentReports are between the calls that AgentCalls counts with: reads without and with a job, and reports.
const (
	AgentReads      = time.Hour / readsAnHour
	AgentReadsOfJob = time.Hour / readsOfAJob
	AgentReports    = time.Hour / reportsAnHour
)
