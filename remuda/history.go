package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
)

// historyFlags are those of a plan for recorded jobs.
type historyFlags struct {
	path, policy, present string
	picture               string
	labels                []string
	boot, wait            time.Duration
	optimize              bool
	zone                  string
}

func (f *historyFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "history", "", "play the jobs of this `FILE`: CSV, or recorded deliveries of workflow_job as lines of JSON; - for standard input")
	c.Flags().StringVar(&f.policy, "policy", "", "with the policy of this `FILE`, a configuration of controld or its pools alone (default: that of an empty file)")
	c.Flags().StringVar(&f.present, "present", "", "beside the policy of this `FILE`")
	c.Flags().StringVar(&f.picture, "picture", "", "also draw the answer into this `FILE`, as SVG")
	c.Flags().StringSliceVar(&f.labels, "label", nil, "only jobs with one of these `LABELS` in runs-on")
	c.Flags().BoolVar(&f.optimize, "optimize", false, "also search for the cheapest minimums and schedules with which 95 of a hundred jobs wait for at most --wait")
	c.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "with --optimize, the bound, a `TIME`")
	c.Flags().StringVar(&f.zone, "time-zone", "UTC", "with --optimize, the `ZONE` of the schedules, such as Europe/Amsterdam")
	c.Flags().DurationVar(&f.boot, "boot", replay.DefaultTimes().Boot, "how long a machine takes to boot, a `TIME`")
}

// asked reports whether recorded jobs are asked about.
func (f *historyFlags) asked() bool { return f.path != "" }

// misused refuses flags that mean nothing together.
func (f *historyFlags) misused(app *cli.App, c *cobra.Command) error {
	if !f.asked() {
		for _, name := range []string{"policy", "present", "picture", "label", "boot", "optimize", "wait", "time-zone"} {
			if c.Flags().Changed(name) {
				return failure.Misused("--%s is about recorded jobs; write --history too", name)
			}
		}
		return nil
	}
	for _, name := range []string{"at", "watch", "snapshot", "address", "context"} {
		if c.Flags().Changed(name) {
			return failure.Misused("--%s is about a fleet, and --history about recorded jobs; leave one of them out", name)
		}
	}
	for _, name := range []string{"wait", "time-zone"} {
		if c.Flags().Changed(name) && !f.optimize {
			return failure.Misused("--%s is for --optimize; write that too", name)
		}
	}
	if f.wait <= 0 {
		return failure.Misused("--wait %s is not more than 0s", f.wait)
	}
	if f.boot < 0 || f.boot > time.Hour {
		return failure.Misused("--boot %s is not from 0s to 1h", f.boot)
	}
	return nil
}

// planHistory answers what a policy would have made of recorded jobs.
func planHistory(ctx context.Context, app *cli.App, f historyFlags) error {
	q, err := f.question(app)
	if err != nil {
		return err
	}
	r, err := forecast.Answer(ctx, q)
	if err != nil {
		return err
	}
	if err := f.draw(r); err != nil {
		return err
	}
	if app.Output.ForPrograms() {
		return output.Value(app.Stdout, app.Output, r)
	}
	out := bufio.NewWriter(app.Stdout)
	if err := r.Table(out, app.Output == output.Wide); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	for _, note := range slices.Concat(r.LeftOut, r.Notes) {
		fmt.Fprintln(app.Stderr, note)
	}
	return nil
}

// draw writes the picture, if one is asked for.
func (f historyFlags) draw(r *forecast.Report) error {
	if f.picture == "" {
		return nil
	}
	var b bytes.Buffer
	if err := r.Picture(&b); err != nil {
		return err
	}
	if err := os.WriteFile(f.picture, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// question reads the files.
func (f historyFlags) question(app *cli.App) (q forecast.Question, err error) {
	q.Times = replay.DefaultTimes()
	q.Times.Boot = f.boot
	q.Times.Start = min(q.Times.Start, f.boot)
	if f.policy == "" {
		q.Policy, err = forecast.ParsePolicy("an empty file", nil)
	} else {
		q.Policy, err = forecast.LoadPolicy(f.policy)
	}
	if err != nil {
		return q, err
	}
	if f.present != "" {
		present, err := forecast.LoadPolicy(f.present)
		if err != nil {
			return q, err
		}
		q.Present = &present
	}
	if q.History, err = history.Load(f.path, app.Stdin); err != nil {
		return q, err
	}
	q.History.Jobs = slices.DeleteFunc(q.History.Jobs, func(j history.Job) bool { return !f.wants(j) })
	if len(q.History.Jobs) == 0 {
		return q, &failure.Error{Code: failure.NotFound, Err: fmt.Errorf("no job to play in %s", f.path), Remedy: strings.Join(q.History.LeftOut(), " ")}
	}
	if f.optimize {
		q.Search.Wait = f.wait
		if q.Search.Zone, err = time.LoadLocation(f.zone); err != nil {
			return q, failure.Misused("--time-zone: %w", err)
		}
	}
	if app.ErrTerminal {
		q.Progress = func(what string) { fmt.Fprintln(app.Stderr, what) }
	}
	return q, nil
}

func (f historyFlags) wants(j history.Job) bool {
	return len(f.labels) == 0 || slices.ContainsFunc(j.Labels, func(l string) bool {
		return slices.ContainsFunc(f.labels, func(wanted string) bool { return strings.EqualFold(l, wanted) })
	})
}

func newPlan(app *cli.App) *cobra.Command {
	var at string
	var recorded historyFlags
	c := &cobra.Command{
		Use: "plan", Short: "Say what a scale-down would do, or what a policy would have made of recorded jobs", GroupID: groupLook,
		Args: cobra.NoArgs,
		Long: `plan says what the next scale-down would do with each host, and does nothing. With --at it says what one at that time would do, if no job
begins or ends and no host comes or goes until then, and what the schedules of the pools want then.

With --history it plays recorded jobs on a fleet with a policy, without calling anything, and says how long they would have waited, how their hosts
would have come and what they would have cost: docs/planning.md.`,
		Example: "  remuda plan\n  remuda plan --at 02:00\n  controld snapshot --config controld.yaml | remuda plan --snapshot -\n" +
			"  remuda plan --history jobs.csv --policy tried.yaml --present controld.yaml\n  remuda plan --history jobs.csv --optimize --wait 20s",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := recorded.misused(app, c); err != nil {
				return err
			}
			if recorded.asked() {
				return failure.Of("", planHistory(c.Context(), app, recorded))
			}
			return failure.Of("", app.Plan(c.Context(), at))
		},
	}
	c.Flags().StringVar(&at, "at", "", "at this `TIME`, at most 7 days ahead: a time of day in UTC such as 02:00, or as RFC 3339 has it")
	recorded.define(c)
	return watched(app, c)
}
