package snapshot

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// part is the part "fleet" of a snapshot. Rows are as the stores have them, by the name of their kind.
type part struct {
	Settings settings `json:"settings"`
	// LeftAlone are the decisions about the hosts that a plan has no words for.
	LeftAlone []decided `json:"leftAlone"`
	// Machines are the answers of the cloud, and Registrations those of GitHub. What is missing there was not answered.
	Machines      []machine                    `json:"machines"`
	Registrations []registrations              `json:"registrations"`
	Rows          map[string][]json.RawMessage `json:"rows"`
	Reports       []json.RawMessage            `json:"reports"`
	Events        []json.RawMessage            `json:"events"`
	// EventsFrom is when the events begin; zero: all are there.
	EventsFrom time.Time `json:"eventsFrom,omitzero"`
	// Cut are the kinds of rows that are not all there, since the snapshot would be too large.
	Cut []string `json:"cut,omitempty"`
}

// decided is a fleet.Decided of a scale-down.
type decided struct {
	InstanceID string               `json:"instanceId"`
	Action     lifecycle.Action     `json:"action"`
	Code       lifecycle.ReasonCode `json:"code"`
	Reason     string               `json:"reason"`
}

// registrations are all runners of an owner, or of a repository that has its own.
type registrations struct {
	Owner   string   `json:"owner"`
	Runners []runner `json:"runners"`
}

// runner is a lifecycle.Runner.
type runner struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Online bool   `json:"online,omitempty"`
	Busy   bool   `json:"busy,omitempty"`
	Gone   bool   `json:"gone,omitempty"`
}

// machine is a lifecycle.Machine.
type machine struct {
	InstanceID string                 `json:"instanceId"`
	HostKey    string                 `json:"hostKey,omitempty"`
	State      lifecycle.MachineState `json:"state"`
	Impaired   bool                   `json:"impaired,omitempty"`
	Hibernates bool                   `json:"hibernates,omitempty"`
	Foreign    bool                   `json:"foreign,omitempty"`
	EndReason  string                 `json:"endReason,omitempty"`
	lifecycle.Hardware
	LaunchedAt      time.Time `json:"launchedAt,omitzero"`
	EndedAt         time.Time `json:"endedAt,omitzero"`
	Pool            string    `json:"pool,omitempty"`
	Repository      string    `json:"repository,omitempty"`
	RunID           string    `json:"runId,omitempty"`
	RequestID       string    `json:"requestId,omitempty"`
	Launch          int       `json:"launch,omitempty"`
	TemplateVersion string    `json:"templateVersion,omitempty"`
	Bypass          bool      `json:"bypass,omitempty"`
}

func leftAlone(all []fleet.Decided) []decided {
	list := []decided{}
	for _, d := range all {
		list = append(list, decided{d.InstanceID, d.Action, d.Code, d.Reason})
	}
	return list
}

// decisions are leftAlone the other way round.
func decisions(list []decided) (all []fleet.Decided) {
	for _, d := range list {
		all = append(all, fleet.Decided{InstanceID: d.InstanceID, Action: d.Action, Code: d.Code, Reason: d.Reason, Sweep: "scale_down"})
	}
	return all
}

// parse reads the part of a snapshot.
func parse(text json.RawMessage) (part, error) {
	var p part
	if err := json.Unmarshal(text, &p); err != nil {
		return p, damaged("%w", err)
	}
	return p, nil
}

// damaged is the error about a part that no controld has written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("fleet: %w; the file is damaged: write it again with `controld snapshot`", fmt.Errorf(format, args...))
}
