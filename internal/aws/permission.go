package aws

// Permission is an action that an adapter calls, for the policies of docs/iam.
type Permission struct {
	// Action as IAM names it, such as "dynamodb:GetItem".
	Action string
	// Role is whose policy needs it.
	Role Role
	// On is what kind of thing it acts on.
	On Kind
	// Why is the sentence that stands beside it: the call that needs it.
	Why string
}

// Role is a party that has a policy of its own.
type Role string

// The roles. What only Refresh needs, to create and change resources, is apart,
// so that a daemon can be run without it.
const (
	RoleControld Role = "controld"
	RoleRefresh  Role = "refresh"
	RoleHost     Role = "host"
)

// Kind is what an action acts on. The renderer of policies makes ARNs and
// conditions of it.
type Kind string

// The kinds.
const (
	OnInstances Kind = "instances table" // and those that follow: tables, with their indexes
	OnReports   Kind = "reports table"
	OnTables    Kind = "tables"
	OnQueues    Kind = "queues"
	OnTemplates Kind = "launch templates"
	OnFleet     Kind = "fleet"    // what CreateFleet makes and uses
	OnMachines  Kind = "machines" // instances with our tag
	OnOwn       Kind = "own machine"
	OnRole      Kind = "role" // the role and profile of hosts
	OnAll       Kind = "all"  // actions that know no resource
)
