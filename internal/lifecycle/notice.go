package lifecycle

import "time"

// NoticeKind says what EC2 announces of a machine.
type NoticeKind string

// The kinds of notice.
const (
	// NoticeInterruption: EC2 takes the spot machine back, about two minutes later.
	NoticeInterruption NoticeKind = "interruption"
	// NoticeRebalance: the risk that it will is higher than usual.
	NoticeRebalance NoticeKind = "rebalance"
	// NoticeEnding: the machine stops or ends, or has done so, for whatever cause.
	NoticeEnding NoticeKind = "ending"
)

// Notice is what EC2 announces of one machine, by an event of EventBridge.
type Notice struct {
	InstanceID string
	Kind       NoticeKind
	// At is when EC2 said so.
	At time.Time
}

// NoticeDelivery is one notice as handed out by its queue. It comes again until it is deleted.
type NoticeDelivery struct {
	Notice Notice
	// Handle names this delivery to Delete.
	Handle string
}

// InterruptionLead is how long before it takes a spot machine back EC2 says so
// (EC2 user guide, "Spot Instance interruption notices").
const InterruptionLead = 2 * time.Minute
