package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

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

// NoticeDelivery is one notice as handed out by its queue. It comes again until
// it is deleted.
type NoticeDelivery struct {
	Notice Notice
	// Handle names this delivery to Delete.
	Handle string
}

// ErrNoticeIgnored is an event of EventBridge that is sound and announces
// nothing that matters to a host.
var ErrNoticeIgnored = errors.New("announces nothing that matters to a host")

// maxNotice bounds the body of an event; EC2's are below 1 KiB.
const maxNotice = 16 << 10

// InterruptionLead is how long before it takes a spot machine back EC2 says so
// (EC2 user guide, "Spot Instance interruption notices").
const InterruptionLead = 2 * time.Minute

var noticedID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// ParseNotice reads an event of EventBridge, as its rule puts it into a queue.
// Source of its form: EC2 user guide, "Monitor Amazon EC2 using EventBridge". An
// event of another kind is ErrNoticeIgnored.
func ParseNotice(body []byte) (Notice, error) {
	malformed := func(format string, args ...any) (Notice, error) {
		return Notice{}, fmt.Errorf("parse notice: %w", fmt.Errorf(format, args...))
	}
	if len(body) > maxNotice {
		return malformed("%d bytes, at most %d allowed", len(body), maxNotice)
	}
	var event struct {
		Version    string    `json:"version"`
		DetailType string    `json:"detail-type"`
		Source     string    `json:"source"`
		Time       time.Time `json:"time"`
		Detail     struct {
			InstanceID string `json:"instance-id"`
			Action     string `json:"instance-action"`
			State      string `json:"state"`
		} `json:"detail"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return malformed("%w", err)
	}
	n := Notice{InstanceID: event.Detail.InstanceID, At: event.Time.UTC()}
	switch {
	case event.Version != "0":
		return malformed("version is %.20q, not of an event of EventBridge", event.Version)
	case event.Source != "aws.ec2":
		return Notice{}, fmt.Errorf("source %.40q: %w", event.Source, ErrNoticeIgnored)
	}
	switch event.DetailType {
	case "EC2 Spot Instance Interruption Warning":
		n.Kind = NoticeInterruption
	case "EC2 Instance Rebalance Recommendation":
		n.Kind = NoticeRebalance
	case "EC2 Instance State-change Notification":
		switch event.Detail.State {
		case "stopping", "stopped", "shutting-down", "terminated":
			n.Kind = NoticeEnding
		case "pending", "running":
			return Notice{}, fmt.Errorf("state %s: %w", event.Detail.State, ErrNoticeIgnored)
		default:
			return malformed("state %.40q is not one of EC2's", event.Detail.State)
		}
	default:
		return Notice{}, fmt.Errorf("%.80q: %w", event.DetailType, ErrNoticeIgnored)
	}
	switch {
	case !noticedID.MatchString(n.InstanceID):
		return malformed("instance-id %.40q is not an instance's", n.InstanceID)
	case n.At.IsZero():
		return malformed("time is missing")
	case n.Kind == NoticeInterruption && !interrupting(event.Detail.Action):
		return malformed("instance-action %.40q is not one of EC2's", event.Detail.Action)
	}
	return n, nil
}

// interrupting: whichever of these EC2 does, no job outlives it.
func interrupting(action string) bool {
	return action == "terminate" || action == "stop" || action == "hibernate"
}
