package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/plan"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Opened is the fleet of a snapshot. Its calls are those of the FleetService, except what changes something and streams.
type Opened struct {
	grpc.ClientConnInterface
	// At is when the snapshot was taken, and the time of all answers.
	At time.Time
	// Lacks says in sentences what of the fleet is not in the snapshot.
	Lacks []string

	// unanswered are the methods that the snapshot has no answers to, and why.
	unanswered map[string]string
}

// Invoke makes a call.
func (o *Opened) Invoke(ctx context.Context, method string, args, reply any, with ...grpc.CallOption) error {
	if why := o.unanswered[method]; why != "" {
		return status.Error(codes.Unimplemented, why)
	}
	return o.ClientConnInterface.Invoke(ctx, method, args, reply, with...)
}

// Read serves the fleet of a snapshot file; "-" is standard input.
func Read(path string, stdin io.Reader) (*Opened, error) {
	s, err := plan.Snapshot(path, stdin)
	if err != nil {
		return nil, err
	}
	o, err := Open(s)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", path, err)
	}
	return o, nil
}

// Open serves the fleet of a snapshot in this process.
func Open(s policy.Snapshot) (*Opened, error) {
	if s.Fleet == nil {
		return open(s, part{Settings: settings{Pools: []pool{{Name: "default"}}}}, onlyPlan())
	}
	p, err := parse(s.Fleet)
	if err != nil {
		return nil, err
	}
	return open(s, p, p.unanswered())
}

// onlyPlan are the methods that a snapshot of format 1 has no answers to: all but the plan.
func onlyPlan() map[string]string {
	why := map[string]string{}
	for _, m := range remudav1.FleetService_ServiceDesc.Methods {
		why["/"+remudav1.FleetService_ServiceDesc.ServiceName+"/"+m.MethodName] =
			"the snapshot has only what a scale-down decides by, so only `remuda plan` can be asked; `controld snapshot` of this version writes the whole fleet"
	}
	delete(why, remudav1.FleetService_PlanScaleDown_FullMethodName)
	return why
}

// unanswered are the methods that the snapshot has no answers to.
func (p part) unanswered() map[string]string {
	if len(p.Settings.Services) == 0 {
		return nil
	}
	return map[string]string{remudav1.FleetService_ListServices_FullMethodName: fmt.Sprintf(
		"a snapshot has no state of services, and this fleet has %s; ask its controld", strings.Join(p.Settings.Services, ", "))}
}

func open(s policy.Snapshot, p part, unanswered map[string]string) (*Opened, error) {
	now := func() time.Time { return s.Now }
	rows := memory.New(now)
	if err := p.load(rows); err != nil {
		return nil, err
	}
	o, err := p.options(rows)
	if err != nil {
		return nil, err
	}
	o.ScaleDown = &fleet.ScaleDown{
		Policy: s.Policy, GitHub: hub{}, Scope: p.Settings.scope, Every: p.Settings.ScaleDownEvery, PlanOnly: p.Settings.ScaleDownEvery == 0,
		Taken: func() (policy.Snapshot, []fleet.Decided) { return s, decisions(p.LeftAlone) },
	}
	f, err := fleet.New(o)
	if err != nil {
		return nil, damaged("settings: %w", err)
	}
	answers, err := server.New(server.Options{Fleet: f, Now: now})
	if err != nil {
		return nil, err
	}
	return &Opened{ClientConnInterface: answers.Viewer("a snapshot"), At: s.Now, Lacks: p.lacks(), unanswered: unanswered}, nil
}

// options are those of a fleet whose ports answer as was heard.
func (p part) options(rows *memory.Store) (fleet.Options, error) {
	o, err := p.Settings.options()
	if err != nil {
		return o, err
	}
	h := hub{scope: p.Settings.scope, heard: map[string][]lifecycle.Runner{}}
	for _, of := range p.Registrations {
		h.heard[of.Owner] = []lifecycle.Runner{}
		for _, r := range of.Runners {
			h.heard[of.Owner] = append(h.heard[of.Owner], lifecycle.Runner(r))
		}
	}
	c := cloud{heard: map[string]lifecycle.Machine{}}
	for _, m := range p.Machines {
		c.heard[m.InstanceID] = lifecycle.Machine(m)
	}
	o.Store, o.Guards, o.Queue, o.Compute, o.GitHub, o.Replica = rows, rows, queue{}, c, h, "snapshot"
	if o.Jobs != nil {
		o.Jobs.Store, o.Jobs.GitHub = rows, h
	}
	return o, nil
}

// scope names the owner of the runners of a repository.
func (s settings) scope(repository string) string {
	if s.Organization {
		repository = lifecycle.Owner(repository)
	}
	return strings.ToLower(repository)
}

// lacks says what of the fleet is not there.
func (p part) lacks() (sentences []string) {
	if len(p.Cut) > 0 {
		sentences = append(sentences, fmt.Sprintf("Some rows are left out, since the snapshot would be too large: %s.", strings.Join(p.Cut, ", ")))
	}
	if from := p.EventsFrom; !from.IsZero() {
		sentences = append(sentences, fmt.Sprintf("Events before %s are left out.", from.UTC().Format(time.RFC3339)))
	}
	return sentences
}

// kinds are those that a snapshot has rows of, by name.
var kinds = byName(
	store.Instances.Kind, store.Requests.Kind, store.Jobs.Kind, store.SlotTables.Kind, store.FleetHolds.Kind, store.Pauses.Kind,
	store.Days.Kind, store.Readings.Kind, store.JobTimes.Kind, store.CallDays.Kind,
)

func byName(all ...*store.Kind) map[string]*store.Kind {
	by := map[string]*store.Kind{}
	for _, k := range all {
		by[k.Name] = k
	}
	return by
}

// load fills an empty store.
func (p part) load(rows *memory.Store) error {
	ctx := context.Background() // nothing is waited for
	for _, name := range slices.Sorted(maps.Keys(p.Rows)) {
		k, known := kinds[name]
		if !known {
			return damaged("rows: %.80q is no kind of rows", name)
		}
		for i, text := range p.Rows[name] {
			if err := loadRow(ctx, rows, k, text); err != nil {
				return damaged("rows.%s[%d]: %w", name, i, err)
			}
		}
	}
	for i, text := range p.Reports {
		var report lifecycle.Report
		err := json.Unmarshal(text, &report)
		if err == nil {
			err = rows.ForHost(report.HostKey).PutReport(ctx, report)
		}
		if err != nil {
			return damaged("reports[%d]: %w", i, err)
		}
	}
	events := make([]lifecycle.Event, len(p.Events))
	for i, text := range p.Events {
		if err := json.Unmarshal(text, &events[i]); err != nil {
			return damaged("events[%d]: %w", i, err)
		}
	}
	return rows.AddEvents(ctx, events)
}

func loadRow(ctx context.Context, rows *memory.Store, k *store.Kind, text json.RawMessage) error {
	row := k.New(store.Key{})
	if err := json.Unmarshal(text, row); err != nil {
		return err
	}
	key := k.Key(row)
	if k != store.FleetHolds.Kind && slices.Contains(k.Texts(key), "") {
		return fmt.Errorf("it has no %s", strings.Join(k.KeyColumns, ", "))
	}
	*k.Version(row) = 1
	if k.Upsert {
		return rows.Update(ctx, k, row)
	}
	return rows.Create(ctx, k, row)
}
