package notices

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// ErrIgnored is an event of EventBridge that is sound and announces nothing that matters to a host.
var ErrIgnored = errors.New("announces nothing that matters to a host")

// maxNotice bounds the body of an event; EC2's are below 1 KiB.
const maxNotice = 16 << 10

var noticedID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// Parse reads an event of EventBridge, as its rule puts it into a queue. Source of its form: EC2 user guide,
// "Monitor Amazon EC2 using EventBridge". An event of another kind is ErrIgnored.
func Parse(body []byte) (lifecycle.Notice, error) {
	malformed := func(format string, args ...any) (lifecycle.Notice, error) {
		return lifecycle.Notice{}, fmt.Errorf("parse notice: %w", fmt.Errorf(format, args...))
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
	n := lifecycle.Notice{InstanceID: event.Detail.InstanceID, At: event.Time.UTC()}
	switch {
	case event.Version != "0":
		return malformed("version is %.20q, not of an event of EventBridge", event.Version)
	case event.Source != "aws.ec2":
		return lifecycle.Notice{}, fmt.Errorf("source %.40q: %w", event.Source, ErrIgnored)
	}
	switch event.DetailType {
	case "EC2 Spot Instance Interruption Warning":
		n.Kind = lifecycle.NoticeInterruption
	case "EC2 Instance Rebalance Recommendation":
		n.Kind = lifecycle.NoticeRebalance
	case "EC2 Instance State-change Notification":
		switch event.Detail.State {
		case "stopping", "stopped", "shutting-down", "terminated":
			n.Kind = lifecycle.NoticeEnding
		case "pending", "running":
			return lifecycle.Notice{}, fmt.Errorf("state %s: %w", event.Detail.State, ErrIgnored)
		default:
			return malformed("state %.40q is not one of EC2's", event.Detail.State)
		}
	default:
		return lifecycle.Notice{}, fmt.Errorf("%.80q: %w", event.DetailType, ErrIgnored)
	}
	switch {
	case !noticedID.MatchString(n.InstanceID):
		return malformed("instance-id %.40q is not an instance's", n.InstanceID)
	case n.At.IsZero():
		return malformed("time is missing")
	case n.Kind == lifecycle.NoticeInterruption && !interrupting(event.Detail.Action):
		return malformed("instance-action %.40q is not one of EC2's", event.Detail.Action)
	}
	return n, nil
}

// interrupting: whichever of these EC2 does, no job outlives it.
func interrupting(action string) bool {
	return action == "terminate" || action == "stop" || action == "hibernate"
}
