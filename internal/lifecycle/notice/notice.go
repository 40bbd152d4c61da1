// Package notice holds what EC2 announces of machines.
package notice

import "time"

// Kind says what EC2 announces of a machine.
type Kind string

// The kinds of notice.
const (
	// Interruption: EC2 takes the spot machine back, about two minutes later.
	Interruption Kind = "interruption"
	// Rebalance: the risk that it will is higher than usual.
	Rebalance Kind = "rebalance"
	// Ending: the machine stops or ends, or has done so, for whatever cause.
	Ending Kind = "ending"
)

// Notice is what EC2 announces of one machine, by an event of EventBridge.
type Notice struct {
	InstanceID string
	Kind       Kind
	// At is when EC2 said so.
	At time.Time
}

// Delivery is one notice as handed out by its queue. It comes again until it is deleted.
type Delivery struct {
	Notice Notice
	// Handle names this delivery to Delete.
	Handle string
}

// Lead is how long before it takes a spot machine back EC2 says so
// (EC2 user guide, "Spot Instance interruption notices").
const Lead = 2 * time.Minute
