package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Snapshot is a fleet at one moment, with all that a scale-down needs to decide:
// what `controld plan` reads and `controld snapshot` writes.
type Snapshot struct {
	Now       time.Time
	Policy    ScaleDown
	Instances []SnapshotInstance
	Runners   []SnapshotRunner
	// Fleet is the rest of the fleet, a JSON object that package snapshot writes and reads; nil: there is none, and a scale-down alone can be planned.
	Fleet json.RawMessage
}

// SnapshotFormat is the newest format that is read. Format 1, which files before it have without saying so, has no Fleet.
const SnapshotFormat = 2

// SnapshotInstance is a host of a snapshot.
type SnapshotInstance struct {
	Candidate
	// State is EC2's word for that of the machine.
	State string
}

// exists: no other machine is there to be scaled down.
func (i SnapshotInstance) exists() bool { return i.State == "running" || i.State == "pending" }

// SnapshotRunner is a registration of a snapshot.
type SnapshotRunner struct {
	Runner
	// Listed is false when GitHub answers for it, asked by its id, and leaves it out of the list.
	Listed bool
}

// Plan is what a scale-down decides for the snapshot: the orphans in their
// order, then the hosts of one owner after the other, in the order in which the
// first of each comes. Machines that neither run nor are about to are left out.
func (s Snapshot) Plan() []HostVerdict {
	orphans, owners, hosts := s.phases()
	lists := s.lists()
	ofOwner := map[string][]Candidate{}
	for _, c := range orphans {
		ofOwner[c.Owner] = append(ofOwner[c.Owner], c)
	}
	byName := map[string][]Runner{}
	for owner, cs := range ofOwner {
		maps.Copy(byName, ByHost(cs, lists[owner]))
	}
	verdicts := make([]HostVerdict, 0, len(s.Instances))
	for _, c := range orphans {
		verdicts = append(verdicts, s.Policy.DecideOrphan(c, s.ask(c), byName[c.InstanceID]))
	}
	kept := s.Policy.ActivePeriod(s.Now)
	for _, owner := range owners {
		verdicts = append(verdicts, s.Policy.DecideOwner(hosts[owner], lists[owner], kept, s.Now)...)
	}
	return verdicts
}

// phases are the orphans, and the other hosts by their owners, whose order is that in which they come first.
func (s Snapshot) phases() (orphans []Candidate, owners []string, hosts map[string][]Candidate) {
	hosts = map[string][]Candidate{}
	for _, i := range s.Instances {
		switch {
		case !i.exists():
		case i.Orphan:
			orphans = append(orphans, i.Candidate)
		default:
			if _, known := hosts[i.Owner]; !known {
				owners = append(owners, i.Owner)
			}
			hosts[i.Owner] = append(hosts[i.Owner], i.Candidate)
		}
	}
	return orphans, owners, hosts
}

// lists are the registrations that each owner's list shows. The list of the owner ""
// shows all of them: a host with an unknown owner may be on any list.
func (s Snapshot) lists() map[string][]Runner {
	lists := map[string][]Runner{}
	unowned := slices.ContainsFunc(s.Instances, func(i SnapshotInstance) bool { return i.Owner == "" })
	for _, r := range s.Runners {
		if r.Listed {
			lists[r.Owner] = append(lists[r.Owner], r.Runner)
			if unowned {
				lists[""] = append(lists[""], r.Runner)
			}
		}
	}
	return lists
}

// ask is GitHub's answer for the registration that the host names.
func (s Snapshot) ask(c Candidate) RunnerLookup {
	for i := range s.Runners {
		if r := &s.Runners[i].Runner; r.ID == c.RunnerID && (r.Owner == c.Owner || c.Owner == "") {
			return RunnerLookup{Known: true, Runner: r}
		}
	}
	return RunnerLookup{Known: true}
}

// unreadable is written for a mark that could not be read.
const unreadable = "unreadable"

// The names of a snapshot are in docs/policies.md#controld-plan and must not change. Times that
// are not known are "", which some of the readers of others want to see.
type (
	snapshotJSON struct {
		Format    int             `json:"format,omitempty"`
		Now       string          `json:"now"`
		Policy    policyJSON      `json:"policy"`
		Instances []instanceJSON  `json:"instances"`
		Runners   []runnerJSON    `json:"runners"`
		Fleet     json.RawMessage `json:"fleet,omitempty"`
	}
	policyJSON struct {
		MinimumRunning   map[string]float64 `json:"minimum_running_time_minutes"`
		BootTime         map[string]float64 `json:"boot_time_minutes"`
		IdleConfirmation float64            `json:"idle_confirmation_seconds"`
		Idle             []periodJSON       `json:"idle"`
	}
	periodJSON struct {
		Cron      string   `json:"cron"`
		TimeZone  string   `json:"time_zone"`
		IdleCount int      `json:"idle_count"`
		Eviction  Eviction `json:"eviction_strategy"`
	}
	instanceJSON struct {
		InstanceID     string `json:"instance_id"`
		LaunchTime     string `json:"launch_time"`
		Owner          string `json:"owner"`
		Scope          string `json:"scope"`
		OS             string `json:"os"`
		State          string `json:"state"`
		Orphan         bool   `json:"orphan"`
		GitHubRunnerID string `json:"github_runner_id"`
		Bypass         bool   `json:"bypass_removal"`
		IdleDetectedAt string `json:"idle_detected_at"`
		AgentBusy      *bool  `json:"agent_busy"`
		AgentSeenAt    string `json:"agent_seen_at"`
	}
	runnerJSON struct {
		ID           int64  `json:"id"`
		Name         string `json:"name"`
		Owner        string `json:"owner"`
		Status       string `json:"status"`
		Busy         bool   `json:"busy"`
		Listed       bool   `json:"listed"`
		OfflineSince string `json:"offline_since"`
	}
)

// MarshalJSON writes the snapshot as ParseSnapshot reads it. The policy's defaults are
// written out, so that every reader decides the same.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	out := snapshotJSON{Now: timeText(s.Now), Policy: s.Policy.json(), Instances: []instanceJSON{}, Runners: []runnerJSON{}, Fleet: s.Fleet}
	if s.Fleet != nil {
		out.Format = SnapshotFormat
	}
	for _, i := range s.Instances {
		out.Instances = append(out.Instances, i.json())
	}
	for _, r := range s.Runners {
		out.Runners = append(out.Runners, runnerJSON{
			ID: r.ID, Name: r.Name, Owner: r.Owner, Status: r.Status, Busy: r.Busy, Listed: r.Listed, OfflineSince: timeText(r.OfflineSince),
		})
	}
	return json.Marshal(out)
}

func (p ScaleDown) json() policyJSON {
	out := policyJSON{
		MinimumRunning:   minutes(p.MinimumRunning, DefaultMinimumRunning()),
		BootTime:         minutes(p.BootTime, DefaultBootTime()),
		IdleConfirmation: p.IdleConfirmation.Seconds(), Idle: []periodJSON{},
	}
	for _, i := range p.Idle {
		out.Idle = append(out.Idle, periodJSON{i.Cron, i.TimeZone, i.IdleCount, i.Eviction})
	}
	return out
}

func (i SnapshotInstance) json() instanceJSON {
	out := instanceJSON{
		InstanceID: i.InstanceID, LaunchTime: timeText(i.LaunchedAt), Owner: i.Owner, Scope: i.Scope, OS: i.OS, State: i.State,
		Orphan: i.Orphan, Bypass: i.Bypass, IdleDetectedAt: timeText(i.IdleDetectedAt),
		AgentBusy: i.AgentBusy, AgentSeenAt: timeText(i.AgentSeenAt),
	}
	if i.UnreadableIdle {
		out.IdleDetectedAt = unreadable
	}
	if i.RunnerID != 0 {
		out.GitHubRunnerID = strconv.FormatInt(i.RunnerID, 10)
	}
	return out
}

func minutes(by, defaults ByOS) map[string]float64 {
	maps.Copy(defaults, by)
	out := map[string]float64{}
	for os, d := range defaults {
		out[os] = d.Minutes()
	}
	return out
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
