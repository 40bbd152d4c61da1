package world

import (
	"strconv"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// What actors read, as far as a rule asks when they did.
var (
	SeesAllReports = engine.Sight{Kind: "reports"}
	SeesHold       = engine.Sight{Kind: "hold of the fleet"}
	SeesPool       = engine.Sight{Kind: "hosts in the pool"}
	SeesHostsOfRun = engine.Sight{Kind: "hosts of a run"}
	SeesMachines   = engine.Sight{Kind: "machines"}
	SeesJobCounts  = engine.Sight{Kind: "counts of jobs"}
)

// SeesPause is the pause of a pool.
func SeesPause(pool string) engine.Sight { return engine.Sight{Kind: "pause", Key: pool} }

// SeesReport is the report of one host.
func SeesReport(hostKey string) engine.Sight { return engine.Sight{Kind: "report", Key: hostKey} }

// SeesDesired is that the service had this desired count.
func SeesDesired(n int) engine.Sight {
	return engine.Sight{Kind: "desired count", Key: strconv.Itoa(n)}
}
