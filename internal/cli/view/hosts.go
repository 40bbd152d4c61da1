package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Filter says which hosts are shown. An empty field leaves none out.
type Filter struct {
	Pool string
	// Repository is "owner/name", or an owner alone. GitHub's names have no case.
	Repository string
	RunID      string
	// States are short states and marks; one of them has to hold.
	States []string
}

// Apply keeps the hosts that pass, in the order of Sort.
func (f Filter) Apply(hosts []*remudav1.Instance, now time.Time) []*remudav1.Instance {
	var kept []*remudav1.Instance
	for _, h := range hosts {
		if f.passes(h, now) {
			kept = append(kept, h)
		}
	}
	Sort(kept)
	return kept
}

func (f Filter) passes(h *remudav1.Instance, now time.Time) bool {
	repository, run, _ := work(h)
	switch {
	case f.Pool != "" && h.GetPool() != f.Pool:
		return false
	case f.RunID != "" && run != f.RunID && h.GetRunId() != f.RunID:
		return false
	case f.Repository != "" && !OfRepository(repository, f.Repository):
		return false
	}
	return len(f.States) == 0 || slices.ContainsFunc(f.States, func(s string) bool { return Is(h, s, now) })
}

// OfRepository reports whether a repository is the one that a person names, or belongs to the owner with that name. GitHub's names have no case.
func OfRepository(repository, named string) bool {
	owner, _, _ := strings.Cut(repository, "/")
	return strings.EqualFold(named, repository) || strings.EqualFold(named, owner)
}

// Sort orders hosts by pool, by how far they are from their end, by run and by id.
func Sort(hosts []*remudav1.Instance) {
	slices.SortFunc(hosts, func(a, b *remudav1.Instance) int {
		return cmp.Or(
			strings.Compare(a.GetPool(), b.GetPool()),
			cmp.Compare(slices.Index(States, State(a)), slices.Index(States, State(b))),
			strings.Compare(a.GetRepository(), b.GetRepository()),
			strings.Compare(a.GetRunId(), b.GetRunId()),
			strings.Compare(a.GetInstanceId(), b.GetInstanceId()))
	})
}

// Hosts is a row for each host, in the order given.
func Hosts(hosts []*remudav1.Instance, now time.Time, wide bool) table.Table {
	t := table.Table{Head: []string{"HOST", "STATE", "POOL", "REPOSITORY", "RUN", "JOB", "BUSY", "SINCE", "NEXT"}}
	if wide {
		t.Head = append(t.Head, "TYPE", "CLASS", "USAGE", "ZONE", "ASSIGNMENT", "HEARTBEAT", "LABELS", "CACHES", "REASON")
	}
	c := clock{now, wide}
	for _, h := range hosts {
		row := []table.Cell{{Text: h.GetInstanceId()}, stateCell(h, now)}
		repository, run, attempt := work(h)
		row = append(row, table.Row(h.GetPool(), repository, runOf(run, attempt), jobOf(h), busy(h), c.age(since(h)), c.next(next(h, now)))...)
		if wide {
			row = append(row, table.Row(h.GetInstanceType(), h.GetResourceClass(), usage(h.GetUsageClass()), h.GetZone(),
				fmt.Sprint(h.GetAssignment()), c.age(at(h.GetHeartbeatTime())), strings.Join(h.GetLabels(), ","), caches(h), reasonOf(h))...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func busy(h *remudav1.Instance) string {
	if h.GetBusy() {
		return "yes"
	}
	return "no"
}

// work is the repository, the run and its attempt that a host serves. Of a host of a job pool they are those of its job, once that is known,
// and before that its slot stands for the run.
func work(h *remudav1.Instance) (repository, run string, attempt int32) {
	if j := h.GetJob(); j != nil {
		return j.GetRepository(), j.GetRunId(), j.GetRunAttempt()
	}
	return h.GetRepository(), h.GetRunId(), h.GetRunAttempt()
}

// runOf is a run with the attempt where it is not the first.
func runOf(run string, attempt int32) string {
	if attempt > 1 {
		return fmt.Sprintf("%s #%d", run, attempt)
	}
	return run
}

// reasonOf says why a host is in its state, and why it is to leave.
func reasonOf(h *remudav1.Instance) string {
	if why := h.GetRetiringReason(); why != "" {
		return fmt.Sprintf("%s; retiring: %s", cmp.Or(h.GetReason(), "no reason was given"), why)
	}
	return h.GetReason()
}

// jobOf is the job that a host runs: its name, or its id.
func jobOf(h *remudav1.Instance) string {
	j := h.GetJob()
	if j == nil {
		return ""
	}
	return cmp.Or(line.First(j.GetName()), fmt.Sprint(j.GetJobId()))
}

func usage(u remudav1.UsageClass) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(u.String(), "USAGE_CLASS_")), "_", "-")
}
