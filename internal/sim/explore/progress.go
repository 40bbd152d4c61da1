package explore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	limits "github.com/remuda-ci/remuda/internal/policy"
)

// values adds what operations say of their state (op.Stated) and what the ports remember.
func (t *text) values(values ...any) {
	for _, v := range values {
		t.value(v)
	}
}

// value adds one value. It panics on a type that no explored operation has had yet: add a
// case for it with all of its fields on which a decision depends.
func (t *text) value(v any) {
	switch v := v.(type) {
	case nil:
		t.add("nil")
	case bool, string, int:
		t.add(v)
	case time.Time:
		t.time(v)
	case error:
		t.add(v.Error())
	case []any:
		t.add(len(v))
		t.values(v...)
	case []error:
		list(t, v)
	case []string:
		list(t, v)
	case map[string]bool:
		table(t, v)
	default:
		t.row(v)
	}
}

// row is value for the words of lifecycle.
func (t *text) row(v any) {
	switch v := v.(type) {
	case lifecycle.Record:
		t.record(v)
	case lifecycle.Request:
		t.request(v)
	case *lifecycle.Request:
		optional(t, v)
	case lifecycle.Report:
		t.report(v)
		t.time(v.HeartbeatAt)
	case *lifecycle.Report:
		optional(t, v)
	case lifecycle.Machine:
		t.add(v.InstanceID, string(v.State), v.Impaired, v.RequestID, v.Launch)
		t.time(v.LaunchedAt)
	case *lifecycle.Machine:
		optional(t, v)
	case lifecycle.Message:
		t.add(v.HostKey, v.Assignment, v.TrustKey)
		t.time(v.Threshold)
	case lifecycle.Delivery:
		t.row(v.Message)
		t.add(v.Handle)
	case lifecycle.Facts:
		t.values(v.Record, v.Report, v.Request, v.Cloud, v.Runner, v.StoreReadableSince, v.ReportsReadAt, v.MassSilence, v.Template, v.GitHubUnavailable, v.FleetHold)
	case *lifecycle.Registration: // any is as good as another
		t.add(v != nil)
	default:
		t.rows(v)
	}
}

// rows is value for lists and tables of them.
func (t *text) rows(v any) {
	switch v := v.(type) {
	case []lifecycle.Record:
		list(t, v)
	case []lifecycle.Request:
		list(t, v)
	case []lifecycle.Machine:
		list(t, v)
	case []lifecycle.Message:
		list(t, v)
	case []lifecycle.Delivery:
		list(t, v)
	case []lifecycle.Facts:
		list(t, v)
	case map[string]lifecycle.Record:
		table(t, v)
	case map[string]lifecycle.Report:
		table(t, v)
	case map[string]lifecycle.Machine:
		table(t, v)
	case map[string]*lifecycle.Request:
		table(t, v)
	default:
		t.unexplored(v)
	}
}

// unexplored is value for what no explored fleet has: limits, jobs, holds and runners as
// GitHub sees them.
func (t *text) unexplored(v any) {
	none := false
	switch v := v.(type) {
	case []limits.Limit:
		none = len(v) == 0
	case []limits.Quota:
		none = len(v) == 0
	case []lifecycle.Job:
		none = len(v) == 0
	case meter.User: // of a release of a job-scoped host
		none = v == (meter.User{})
	case int64: // of a registration for one job
		none = v == 0
	case *limits.Quota:
		none = v == nil
	case *fleethold.Hold:
		none = v == nil || *v == (fleethold.Hold{})
	case *lifecycle.Runner:
		none = v == nil
	}
	if !none {
		panic(fmt.Sprintf("no text of %T", v))
	}
}

func optional[T any](t *text, v *T) {
	if v == nil {
		t.add("nil")
		return
	}
	t.value(*v)
}

func list[T any](t *text, values []T) {
	t.add(len(values))
	for _, v := range values {
		t.value(v)
	}
}

func table[T any](t *text, values map[string]T) {
	t.add(len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		t.add(k)
		t.value(values[k])
	}
}
