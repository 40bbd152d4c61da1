package aws

// The tables of a fleet, without their prefix. The store makes these and no others, and the policies name each of them.
const (
	TableInstances = "instances"
	TableReports   = "reports"
	TableRequests  = "requests"
	TableJobs      = "jobs"
	TableEvents    = "events"
	TableLeases    = "leases"
)

// Table is a table as the policies name it.
type Table struct {
	Name    string
	Indexed bool // it has indexes, which are resources of their own
}

// Tables are all of them. A test of the store compares them with what it makes.
var Tables = []Table{
	{TableInstances, true}, {TableReports, false}, {TableRequests, true}, {TableJobs, true}, {TableEvents, true}, {TableLeases, false},
}
