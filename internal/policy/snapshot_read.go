package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
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
	snapshotFields = []string{"format", "now", "policy", "instances", "runners", "fleet"}
	policyFields   = []string{"minimum_running_time_minutes", "boot_time_minutes", "idle_confirmation_seconds", "idle"}
	periodFields   = []string{"cron", "time_zone", "idle_count", "eviction_strategy"}
	instanceFields = []string{"instance_id", "launch_time", "owner", "scope", "os", "state", "orphan",
		"github_runner_id", "bypass_removal", "idle_detected_at", "agent_busy", "agent_seen_at"}
	runnerFields = []string{"id", "name", "owner", "status", "busy", "listed", "offline_since"}
)

func (r *snapshotReader) snapshot(root node) Snapshot {
	s := Snapshot{}
	f := r.fields(root, snapshotFields)
	if r.newer(f.get("format")) {
		return s
	}
	if fleet := f.get("fleet"); r.isA(fleet, kindObject, kindObject) {
		s.Fleet = json.RawMessage(r.bytes(fleet))
	}
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

// newer reports whether the snapshot is of a format that is not known here. Then that is all that is said of it.
func (r *snapshotReader) newer(format node) bool {
	if r.absent(format) {
		return false
	}
	n := r.whole(format, 1)
	if n <= SnapshotFormat {
		return false
	}
	r.problems, r.more = nil, false
	r.problem(format, "a newer controld wrote this snapshot, in format %d, and formats up to %d are read here; use a remuda and a controld of its version", n, SnapshotFormat)
	return true
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

// fields are those of an object, by their names.
type fields struct {
	of     *node
	names  []string
	values []span
}

// span is where a value begins and ends; both are 0 where it is absent.
type span struct{ begin, end int }

func (f fields) get(name string) node {
	at := f.values[slices.Index(f.names, name)]
	return node{in: f.of, name: name, index: inObject, begin: at.begin, end: at.end}
}

// fields reads an object that has only the named fields. A field that comes twice is
// an error, since a reader could not say which of the two counts.
func (r *snapshotReader) fields(n node, names []string) fields {
	f := fields{&n, names, make([]span, len(names))}
	switch kind := r.kind(n); {
	case kind == kindNull && n.in != nil:
		return f
	case kind != kindObject:
		r.wrongType(n, kindObject)
		return f
	}
	for name, value := range r.members(f.of) {
		at := slices.IndexFunc(names, func(known string) bool { return r.is(name, known) })
		switch {
		case at < 0:
			value.name = r.document.text(name)
			r.problem(value, "means nothing here; there are %s", strings.Join(names, ", "))
		case f.values[at].end > 0:
			r.problem(node{begin: name.end}, "%s is given twice; remove one", join(n.path(), names[at]))
		default:
			f.values[at] = span{value.begin, value.end}
		}
		if r.more {
			break
		}
	}
	return f
}

func (r *snapshotReader) absent(n node) bool { return r.kind(n) == kindNull }

// isA reports whether a value is of a kind; one that is absent is of none.
func (r *snapshotReader) isA(n node, kind, want string) bool {
	is := r.kind(n)
	if is != kind && is != kindNull {
		r.wrongType(n, want)
	}
	return is == kind
}

func (r *snapshotReader) wrongType(n node, want string) {
	r.problem(n, "is %s; write %s", r.kind(n), want)
}

// list are the items of a list, as long as there is room for what is wrong with them.
func (r *snapshotReader) list(n *node) iter.Seq[node] {
	return func(yield func(node) bool) {
		if !r.isA(*n, kindList, kindList) {
			return
		}
		for item := range r.items(n) {
			if r.more || !yield(item) {
				return
			}
		}
	}
}

func (r *snapshotReader) text(n node) string {
	if !r.isA(n, kindText, kindText) {
		return ""
	}
	return r.document.text(n)
}

// word checks a text that is one of a few; "" is one that is not known.
func (r *snapshotReader) word(n node, text string, words []string) {
	if text != "" && !slices.Contains(words, text) {
		r.problem(n, "%.80q is none of %s", text, strings.Join(words, ", "))
	}
}

func (r *snapshotReader) required(n node) string {
	text := r.text(n)
	if kind := r.kind(n); kind == kindNull || kind == kindText && text == "" {
		r.missing(n)
	}
	return text
}

// missing says that a field is. Of what is no object at all, that was said.
func (r *snapshotReader) missing(n node) {
	if in := r.kind(*n.in); in == kindObject || in == kindNull && n.in.in != nil {
		r.problem(n, "is missing")
	}
}

func (r *snapshotReader) yes(n node, absent bool) bool {
	if r.absent(n) {
		return absent
	}
	return r.isA(n, kindBoolean, "true or false") && r.document[n.begin] == 't'
}

// time reads a time; "" is one that is not known.
func (r *snapshotReader) time(n node) time.Time {
	text := r.text(n)
	if text == "" {
		return time.Time{}
	}
	t, ok := readTime(text)
	if !ok {
		r.problem(n, "%.80q is no time; write it as 2026-01-01T12:00:00Z", text)
	}
	return t
}

// readTime reads a time that can be written again: in UTC, its year has four digits.
func readTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	t = t.UTC()
	if err != nil || t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}

// whole reads a whole number.
func (r *snapshotReader) whole(n node, least int64) int64 {
	if !r.isA(n, kindNumber, kindNumber) {
		return 0
	}
	number := string(r.bytes(n))
	i, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		r.problem(n, "%.40s is no whole number, or too large a one", number)
		return 0
	case i < 0:
		r.problem(n, "%d is negative", i)
	case i < least:
		r.problem(n, "%d is less than %d", i, least)
	}
	return i
}

// runnerID reads an id that is written as a text, as in the tag in which it is kept, or as a number.
func (r *snapshotReader) runnerID(n node) int64 {
	if r.kind(n) != kindText {
		return r.whole(n, 1)
	}
	text := r.text(n)
	if text == "" {
		return 0
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		r.problem(n, "%.40q is no id of a runner; write its number, or \"\" if it has none", text)
	}
	return id
}

// longest is more than any duration means, and small enough to reckon with.
const longest = 100 * 365 * 24 * time.Hour

// duration reads a number of units, which need not be whole.
func (r *snapshotReader) duration(n node, unit time.Duration) time.Duration {
	if !r.isA(n, kindNumber, kindNumber) {
		return 0
	}
	number := r.bytes(n)
	f, err := strconv.ParseFloat(string(number), 64)
	switch {
	case err != nil || f > float64(longest/unit):
		r.problem(n, "%.40s is more than %d", number, longest/unit)
	case f < 0:
		r.problem(n, "%.40s is negative", number)
	default:
		return time.Duration(math.Round(f * float64(unit)))
	}
	return 0
}
