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

// Kind is what an action acts on. The renderer of policies makes ARNs and conditions of it.
type Kind string

// The kinds.
const (
	OnInstances Kind = "instances table"  // the host's own row
	OnReports   Kind = "reports table"    // the host's own row
	OnTables    Kind = "tables"           // all of them, with their indexes
	OnQueues    Kind = "queues"           // all of them
	OnTemplates Kind = "launch templates" // with our tag
	// OnNewTemplates are launch templates that are being made, with our tag.
	OnNewTemplates Kind = "new launch templates"
	OnFleet        Kind = "fleet"            // what CreateFleet makes and uses
	OnNewTags      Kind = "tags on creation" // of what is being made
	OnMachines     Kind = "machines"         // instances with our tag
	OnOwn          Kind = "own machine"
	OnHostRole     Kind = "host role" // to be passed to EC2
	OnProfile      Kind = "host profile"
	OnServices     Kind = "services"   // of ECS, those of the configuration
	OnAll          Kind = "everything" // actions that know no resource
)
