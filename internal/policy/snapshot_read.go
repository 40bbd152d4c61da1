package policy

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MaxSnapshot bounds a snapshot, in bytes: some hundred thousand hosts.
const MaxSnapshot = 64 << 20

// maxProblems bounds what is said about one snapshot: its writer makes the same mistake with each host.
const maxProblems = 20

// ParseSnapshot reads a snapshot: docs/policies.md has the format. All that is wrong with it is said at once,
// a line for each thing with its place: line and column, and the path to it.
func ParseSnapshot(data []byte) (Snapshot, error) {
	if len(data) > MaxSnapshot {
		return Snapshot{}, fmt.Errorf("a snapshot may have %d bytes, and this one has more", MaxSnapshot)
	}
	r := snapshotReader{document: data}
	if offset, err := r.check(); err != nil {
		r.problem(node{begin: offset}, "%w", err)
		return Snapshot{}, r.err()
	}
	s := r.snapshot(r.root())
	if err := r.err(); err != nil {
		return Snapshot{}, err
	}
	return s, nil
}

// snapshotReader turns the nodes of a document into a snapshot and gathers what
// is wrong with them. An absent field and null are the same to it.
type snapshotReader struct {
	document
	problems []error
	more     bool // there are problems that are not said, and the rest is not read
}

func (r *snapshotReader) problem(n node, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.more = true
		return
	}
	err := fmt.Errorf(format, args...)
	if path := n.path(); path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	before := r.document[:n.offset()]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	r.problems = append(r.problems, fmt.Errorf("line %d, column %d: %w", line, column, err))
}

func (r *snapshotReader) err() error {
	if r.more {
		return errors.Join(append(r.problems, errors.New("and more"))...)
	}
	return errors.Join(r.problems...)
}

// The fields that there are.
var (
	snapshotFields = []string{"now", "policy", "instances", "runners"}
	policyFields   = []string{"minimum_running_time_minutes", "boot_time_minutes", "idle_confirmation_seconds", "idle"}
	periodFields   = []string{"cron", "time_zone", "idle_count", "eviction_strategy"}
	instanceFields = []string{"instance_id", "launch_time", "owner", "scope", "os", "state", "orphan",
		"github_runner_id", "bypass_removal", "idle_detected_at", "agent_busy", "agent_seen_at"}
	runnerFields = []string{"id", "name", "owner", "status", "busy", "listed", "offline_since"}
)

func (r *snapshotReader) snapshot(root node) Snapshot {
	s := Snapshot{}
	f := r.fields(root, snapshotFields)
	if now := f.get("now"); r.required(now) != "" {
		s.Now = r.time(now)
	}
	s.Policy = r.policy(f.get("policy"))
	instances, runners := f.get("instances"), f.get("runners")
	seen := map[string]int{}
	s.Instances = slices.Grow(s.Instances, r.room(instances, `{"instance_id":"i","state":"running"}`))
	for n := range r.list(&instances) {
		i := r.instance(n)
		if first, twice := seen[i.InstanceID]; twice {
			r.problem(n, "%.80q was given before, as %s[%d]", i.InstanceID, instances.path(), first)
		}
		if i.InstanceID != "" {
			seen[i.InstanceID] = n.index
		}
		if len(r.problems) == 0 { // what is wrong may be as long as the document
			s.Instances = append(s.Instances, i)
		}
	}
	s.Runners = slices.Grow(s.Runners, r.room(runners, `{"id":1,"name":"n","owner":"o","status":"online"}`))
	for n := range r.list(&runners) {
		if runner := r.runner(n); len(r.problems) == 0 {
			s.Runners = append(s.Runners, runner)
		}
	}
	return s
}

// room is how many items a list has, but no more than there can be when none is
// shorter than the shortest that is right.
func (r *snapshotReader) room(list node, shortest string) int {
	items := 0
	if r.kind(list) == kindList {
		for range r.items(&list) {
			items++
		}
	}
	return min(items, (list.end-list.begin)/len(shortest))
}

// plainID is what can be the id of an instance here or on any cloud.
var plainID = regexp.MustCompile(`^[!-~]{1,128}$`)

// The words of EC2 for the state of a machine, and ours for what an owner is.
var (
	machineStates = []string{"pending", "running", "shutting-down", "terminated", "stopping", "stopped"}
	ownerScopes   = []string{"org", "repo"}
)

func (r *snapshotReader) instance(n node) SnapshotInstance {
	f := r.fields(n, instanceFields)
	i := SnapshotInstance{State: r.required(f.get("state"))}
	i.Candidate = Candidate{
		InstanceID: r.required(f.get("instance_id")), LaunchedAt: r.time(f.get("launch_time")),
		Owner: r.text(f.get("owner")), Scope: r.text(f.get("scope")), OS: r.text(f.get("os")),
		Orphan: r.yes(f.get("orphan"), false), RunnerID: r.runnerID(f.get("github_runner_id")), Bypass: r.yes(f.get("bypass_removal"), false),
		AgentSeenAt: r.time(f.get("agent_seen_at")),
	}
	if id := f.get("instance_id"); i.InstanceID != "" && !plainID.MatchString(i.InstanceID) {
		r.problem(id, "%.80q is no id of an instance: letters, digits and marks, at most 128", i.InstanceID)
	}
	r.word(f.get("state"), i.State, machineStates)
	r.word(f.get("scope"), i.Scope, ownerScopes)
	r.word(f.get("os"), strings.ToLower(i.OS), operatingSystems)
	if busy := f.get("agent_busy"); !r.absent(busy) {
		i.AgentBusy = new(r.yes(busy, false))
	}
	// Whatever text is in the mark's tag, it is no error of the snapshot.
	if mark := r.text(f.get("idle_detected_at")); mark != "" {
		t, ok := readTime(mark)
		i.IdleDetectedAt, i.UnreadableIdle = t, !ok
	}
	return i
}

func (r *snapshotReader) runner(n node) SnapshotRunner {
	f := r.fields(n, runnerFields)
	runner := SnapshotRunner{Listed: r.yes(f.get("listed"), true)}
	runner.Runner = Runner{
		ID: r.whole(f.get("id"), 1), Name: r.required(f.get("name")), Owner: r.required(f.get("owner")),
		Status: r.required(f.get("status")), Busy: r.yes(f.get("busy"), false), OfflineSince: r.time(f.get("offline_since")),
	}
	r.word(f.get("status"), runner.Status, runnerStatuses)
	if id := f.get("id"); r.absent(id) {
		r.missing(id)
	}
	return runner
}

func (r *snapshotReader) policy(n node) ScaleDown {
	f := r.fields(n, policyFields)
	p := ScaleDown{
		MinimumRunning:   r.byOS(f.get("minimum_running_time_minutes")),
		BootTime:         r.byOS(f.get("boot_time_minutes")),
		IdleConfirmation: r.duration(f.get("idle_confirmation_seconds"), time.Second),
	}
	periods := f.get("idle")
	for idle := range r.list(&periods) {
		p.Idle = append(p.Idle, r.period(idle))
	}
	return p
}

func (r *snapshotReader) period(n node) Period {
	f := r.fields(n, periodFields)
	expression, count := r.required(f.get("cron")), r.whole(f.get("idle_count"), 0)
	if count > math.MaxInt32 {
		r.problem(f.get("idle_count"), "%d is more hosts than a fleet can have", count)
	}
	zone, eviction := r.text(f.get("time_zone")), Eviction(r.text(f.get("eviction_strategy")))
	if expression == "" {
		return Period{}
	}
	p, err := ParsePeriod(expression, zone, int(min(max(count, 0), math.MaxInt32)), eviction)
	var wrong PeriodErrors
	if errors.As(err, &wrong) {
		for _, e := range wrong {
			r.problem(f.get(e.Field), "%s", e.Rule)
		}
	}
	return p
}

// byOS reads a number of minutes, or one for each operating system.
func (r *snapshotReader) byOS(n node) ByOS {
	if r.kind(n) != kindObject {
		if r.absent(n) {
			return nil
		}
		d := r.duration(n, time.Minute)
		by := ByOS{}
		for _, os := range operatingSystems {
			by[os] = d
		}
		return by
	}
	f := r.fields(n, operatingSystems)
	by := ByOS{}
	for _, os := range operatingSystems {
		if value := f.get(os); !r.absent(value) {
			by[os] = r.duration(value, time.Minute)
		}
	}
	return by
}
