package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/permissions"
)

// checkTimeout bounds the check of the account, which makes some dozens of calls.
const checkTimeout = 2 * time.Minute

// accountProbe asks an account what a fleet may do in it.
type accountProbe struct {
	rehearse func(ctx context.Context, orders []lifecycle.LaunchOrder) []ec2.Rehearsal
	// quota reads a quota of EC2 by its code.
	quota func(ctx context.Context, code string) (float64, error)
	// fleets are the prefixes of the fleets that are there.
	fleets func(ctx context.Context) ([]string, error)
}

// accountReport is what config check --aws says about an account.
type accountReport struct {
	Changes     []resourceChange  `json:"changes"`
	Permissions []permissionCheck `json:"permissions"`
	Quotas      []quotaCheck      `json:"quotas"`
	Prefixes    []prefixCheck     `json:"prefixes"`
}

// resourceChange is what Refresh would create or change.
type resourceChange struct {
	Change resources.Change `json:"change"`
	Kind   string           `json:"kind"`
	Name   string           `json:"name"`
	Detail string           `json:"detail,omitempty"`
}

// The results of a check of the account.
const (
	resultAllowed  = "allowed"
	resultDenied   = "denied"
	resultFailed   = "failed"
	resultNotTried = "not tried"
	resultEnough   = "enough"
	resultSmall    = "too small"
	resultUnknown  = "not known"
	resultOverlaps = "overlaps"
)

// permissionCheck is the result of a call with DryRun.
type permissionCheck struct {
	Result string `json:"result"`
	Action string `json:"action"`
	Of     string `json:"of,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// prefixCheck is another fleet whose names may be those of this one.
type prefixCheck struct {
	Result string `json:"result"`
	Prefix string `json:"prefix,omitempty"`
	Detail string `json:"detail"`
}

// checkAWS reports what a refresh would create or change, what controld may do, and the quotas. A missing permission is an error; a small quota and the
// prefix of another fleet are not.
func checkAWS(ctx context.Context, c *config.Config, in *inputs.Inputs, call *call, output string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	p, err := newBackends(ctx, c, in, hclog.NewNullLogger(), true)
	if err != nil {
		return err
	}
	changes, err := p.ensure(ctx, true)
	report := accountReport{Changes: []resourceChange{}, Prefixes: []prefixCheck{}}
	if !c.WithoutHosts { // what hosts are launched with
		report.Permissions, report.Quotas = checkPermissions(ctx, c, p.probe), checkQuotas(ctx, c, p.probe)
		report.Prefixes = checkPrefixes(ctx, c.AWS.Prefix, p.probe)
	}
	for _, r := range changes {
		report.Changes = append(report.Changes, resourceChange{r.Change, r.Kind, r.Name, r.Detail})
	}
	if output == "json" {
		e := json.NewEncoder(call.stdout)
		e.SetIndent("", "  ")
		_ = e.Encode(report) // what stdout does not take is lost, as everywhere
	} else {
		report.table(call.stdout, err)
	}
	denied := func(p permissionCheck) bool { return p.Result == resultDenied || p.Result == resultFailed }
	if err == nil && slices.ContainsFunc(report.Permissions, denied) {
		return errTold
	}
	return err
}

// table writes the report for people. err is what a refresh could not look at.
func (r accountReport) table(out io.Writer, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range r.Changes {
		fmt.Fprintf(w, "would be %s\t%s\t%s\t%s\n", c.Change, c.Kind, c.Name, c.Detail)
	}
	_ = w.Flush()
	if err == nil && len(r.Changes) == 0 {
		fmt.Fprintln(out, "AWS: nothing to create or change")
	}
	for _, p := range r.Permissions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Result, p.Action, p.Of, p.Detail)
	}
	_ = w.Flush()
	for _, q := range r.Quotas {
		fmt.Fprintf(w, "%s\tquota %s\t%d vCPU\t%s\n", q.Result, q.Code, q.VCPU, q.Detail)
	}
	_ = w.Flush()
	for _, p := range r.Prefixes {
		fmt.Fprintf(w, "%s\tprefix %s\t%s\n", p.Result, p.Prefix, p.Detail)
	}
	_ = w.Flush()
}

// checkPrefixes looks for fleets whose prefix begins with ours, or ours with theirs.
func checkPrefixes(ctx context.Context, own string, probe *accountProbe) []prefixCheck {
	checks := []prefixCheck{}
	others, err := probe.fleets(ctx)
	if err != nil {
		return append(checks, prefixCheck{Result: resultUnknown, Detail: err.Error()})
	}
	for _, other := range others {
		if overlap(own, other) {
			checks = append(checks, prefixCheck{resultOverlaps, other, "the prefix of another fleet: queues and launch templates of both may have one name, " +
				"and each may use queues of the other that have no tag; choose another prefix"})
		}
	}
	return checks
}

// overlap reports whether names of one fleet may begin like those of another.
func overlap(a, b string) bool {
	return strings.HasPrefix(a, b+"-") || strings.HasPrefix(b, a+"-")
}

// checkPermissions rehearses launches and the end of a machine.
func checkPermissions(ctx context.Context, c *config.Config, probe *accountProbe) []permissionCheck {
	policy := aws.Policy(aws.RoleControld, permissions.Needed(uses(c)), policyNames(c, "*", "", ""))
	checks := []permissionCheck{}
	for _, r := range probe.rehearse(ctx, rehearsals(c)) {
		check := permissionCheck{resultAllowed, r.Action, r.Of, ""}
		switch {
		case r.NotTried != "":
			check.Result, check.Detail = resultNotTried, r.NotTried
		case r.Denied():
			check.Result, check.Detail = resultDenied, remedy(policy, r)
		case r.Err != nil:
			check.Result, check.Detail = resultFailed, r.Err.Error()
		}
		checks = append(checks, check)
	}
	return checks
}

// remedy says what is missing for a call that was denied. EC2 may name another action than that of the call.
func remedy(policy aws.Document, r ec2.Rehearsal) string {
	needs, missing := "", r.Missing()
	if missing != r.Action {
		needs = "it needs " + missing + "; "
	}
	names := statementsWith(policy, missing)
	if len(names) == 0 {
		return needs + "no statement of `controld iam` gives it: " + r.Err.Error()
	}
	return needs + "attach the statements " + strings.Join(names, ", ") + " of `controld iam`"
}

// statementsWith names the statements of a policy that have an action.
func statementsWith(policy aws.Document, action string) []string {
	var names []string
	for _, s := range policy.Statement {
		if slices.Contains(s.Action, action) {
			names = append(names, s.Sid)
		}
	}
	return names
}

// rehearsals are an order for each pool, of its first resource and usage class, and one for each other usage class: who may launch the hosts
// of a pool in one usage class may launch those of another pool in it.
func rehearsals(c *config.Config) []lifecycle.LaunchOrder {
	var orders []lifecycle.LaunchOrder
	known := map[lifecycle.UsageClass]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		class := c.PoolResourceClasses(name)[0]
		has := c.ResourceClasses[class]
		for i, usage := range c.PoolUsageClasses(name) {
			if i > 0 && known[usage] {
				continue
			}
			known[usage] = true
			o := lifecycle.LaunchOrder{
				Token: "check-" + name + "-" + string(usage), RequestID: "check", RunID: "check", Repository: "remuda/check", Number: 1, Count: 1,
				Pool: name, ResourceClass: class, CPU: has.CPU, MemoryMiB: has.MemoryMiB, MaxCPU: has.MaxCPU, MaxMemoryMiB: has.MaxMemoryMiB, UsageClass: usage, PoolTypes: c.Pools[name].InstanceTypes,
			}
			if len(o.PoolTypes) == 0 {
				o.InstanceTypes = fleet.DefaultInstanceTypes
			}
			orders = append(orders, o)
		}
	}
	return orders
}
