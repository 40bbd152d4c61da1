package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/fromgithub"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/retry"
)

// historyFlags are those of a plan for recorded jobs.
type historyFlags struct {
	path, policy, present string
	picture               string
	github, since, save   string
	labels                []string
	boot, wait            time.Duration
	optimize              bool
	zone                  string
}

func (f *historyFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "history", "", "play the jobs of this `FILE`: CSV, or recorded deliveries of workflow_job as lines of JSON; - for standard input")
	c.Flags().StringVar(&f.github, "from-github", "", "read the jobs of `OWNER`, or of one repository OWNER/NAME, from the API of GitHub, with the token in GITHUB_TOKEN")
	c.Flags().StringVar(&f.since, "since", "30d", "with --from-github, those of runs from this `DAY` on, such as 2026-11-01, or of so many days, such as 30d")
	c.Flags().StringVar(&f.save, "save", "", "with --from-github, keep the jobs in this `FILE` as CSV; an earlier reading goes on there")
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
func (f *historyFlags) asked() bool { return f.path+f.github != "" }

// misused refuses flags that mean nothing together.
func (f *historyFlags) misused(app *cli.App, c *cobra.Command) error {
	if !f.asked() {
		for _, name := range []string{"policy", "present", "picture", "label", "boot", "optimize", "wait", "time-zone", "since", "save"} {
			if c.Flags().Changed(name) {
				return failure.Misused("--%s is about recorded jobs; write --history or --from-github too", name)
			}
		}
		return nil
	}
	for _, name := range []string{"at", "watch", "snapshot", "address", "context"} {
		if c.Flags().Changed(name) {
			return failure.Misused("--%s is about a fleet, and --history about recorded jobs; leave one of them out", name)
		}
	}
	if f.path != "" && f.github != "" {
		return failure.Misused("--history and --from-github both name jobs; leave one of them out")
	}
	if f.github != "" && !history.IsRepository(f.github) && !history.IsRepository(f.github+"/any") {
		return failure.Misused("--from-github %.80q is neither an OWNER nor OWNER/NAME", f.github)
	}
	for _, name := range []string{"since", "save"} {
		if c.Flags().Changed(name) && f.github == "" {
			return failure.Misused("--%s is for --from-github; write that too", name)
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
	if _, err := time.LoadLocation(f.zone); err != nil {
		return failure.Misused("--time-zone: %w", err)
	}
	if f.zone == time.Local.String() {
		return failure.Misused("--time-zone Local is not the same everywhere; write a name such as Europe/Amsterdam")
	}
	if f.boot < 0 || f.boot > time.Hour {
		return failure.Misused("--boot %s is not from 0s to 1h", f.boot)
	}
	return nil
}

// planHistory answers what a policy would have made of recorded jobs.
func planHistory(ctx context.Context, app *cli.App, f historyFlags) error {
	q, err := f.question(ctx, app)
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
	if len(r.LeftOut) > 0 && len(f.labels) > 0 {
		fmt.Fprintln(app.Stderr, "Jobs of all labels are counted there, not only those of --label.")
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
func (f historyFlags) question(ctx context.Context, app *cli.App) (q forecast.Question, err error) {
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
	if q.History, err = f.jobs(ctx, app); err != nil {
		return q, err
	}
	switch name := cmp.Or(f.path, f.github); {
	case len(q.History.Jobs) == 0:
		return q, &failure.Error{Code: failure.NotFound, Err: fmt.Errorf("no job to play in %s", name), Remedy: strings.Join(q.History.LeftOut(), " ")}
	case !slices.ContainsFunc(q.History.Jobs, f.wants):
		return q, &failure.Error{
			Code: failure.NotFound, Err: fmt.Errorf("no job in %s has the label %s", name, strings.Join(f.labels, " or ")), Remedy: labelsOf(q.History.Jobs),
		}
	}
	q.History.Jobs = slices.DeleteFunc(q.History.Jobs, func(j history.Job) bool { return !f.wants(j) })
	if f.optimize {
		q.Search.Wait = f.wait
		if q.Search.Zone, err = time.LoadLocation(f.zone); err != nil {
			return q, fmt.Errorf("load time zone: %w", err)
		}
	}
	if app.ErrTerminal {
		q.Progress = func(what string) { fmt.Fprintln(app.Stderr, what) }
	}
	return q, nil
}

// jobs reads the history, from a file or from GitHub.
func (f historyFlags) jobs(ctx context.Context, app *cli.App) (h history.History, err error) {
	if f.github == "" {
		return history.Load(f.path, app.Stdin)
	}
	token := app.Getenv("GITHUB_TOKEN")
	if token == "" {
		return h, &failure.Error{
			Code: failure.NotAllowed, Doing: "read jobs from GitHub", Err: errors.New("GITHUB_TOKEN is not set"),
			Remedy: "Put a token into it that may read Actions of the repositories. It is not written anywhere.",
		}
	}
	since, err := f.from(app.Now())
	if err != nil {
		return h, err
	}
	client, err := fromgithub.NewClient(app.Getenv("GITHUB_API_URL"), token, nil)
	if err != nil {
		return h, failure.Misused("GITHUB_API_URL: %w", err)
	}
	rows := fromgithub.InMemory()
	if f.save != "" {
		if rows, err = fromgithub.OpenRows(f.save, f.github); err != nil {
			return h, err
		}
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	source := fromgithub.Source{
		Client: client, Of: f.github, Since: since, Until: app.Now(), Rows: rows, Now: time.Now, Sleep: retry.Sleep,
		Progress: func(what string) { fmt.Fprintln(app.Stderr, what) },
	}
	if err := source.Read(ctx); err != nil {
		return h, f.cutShort(err)
	}
	return rows.History(since)
}

// cutShort says how a reading goes on that was cut short, or what keeps it from beginning.
func (f historyFlags) cutShort(err error) error {
	made := &failure.Error{Code: failure.Failed, Doing: "read jobs from GitHub", Err: err, Remedy: "With --save FILE a reading can go on where it ended."}
	if f.save != "" {
		made.Remedy = fmt.Sprintf("What was read is in %s, and the same command goes on from there.", f.save)
	}
	var refused *fromgithub.RefusedError
	var noAnswer *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return failure.WithRemedy(failure.Of(made.Doing, err), failure.Interrupted, made.Remedy)
	case errors.As(err, &refused):
		f.refused(made, refused.Status)
	case errors.As(err, &noAnswer):
		made.Code = failure.Unavailable
	}
	return made
}

// refused says what to do about a status that GitHub answered.
func (f historyFlags) refused(made *failure.Error, status int) {
	switch {
	case status == http.StatusNotFound:
		made.Code, made.Remedy = failure.NotFound, fmt.Sprintf("Look at how %s is spelled, and whether the token in GITHUB_TOKEN may see it.", f.github)
	case status == http.StatusUnauthorized:
		made.Code, made.Remedy = failure.NotAllowed, "GitHub refuses the token in GITHUB_TOKEN. It may have expired; make another one. "+made.Remedy
	case status == http.StatusForbidden:
		made.Code, made.Remedy = failure.NotAllowed, "The token in GITHUB_TOKEN has to be allowed to read Actions and Metadata of the repositories. "+made.Remedy
	case status >= http.StatusInternalServerError:
		made.Code = failure.Unavailable
	}
}

// from is the begin of the time that --since names.
func (f historyFlags) from(now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	if days, ok := strings.CutSuffix(f.since, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 1 && n <= 400 {
			return today.AddDate(0, 0, 1-n), nil
		}
	}
	day, err := time.Parse(time.DateOnly, f.since)
	if err != nil || day.After(now) {
		return day, failure.Misused("--since: %q is neither a day such as %s nor a number of days from 1d to 400d", f.since, today.Format(time.DateOnly))
	}
	return day, nil
}

// labelsNamed is how many labels a sentence names at most.
const labelsNamed = 12

// labelsOf says in a sentence which labels jobs have, the most frequent first.
func labelsOf(jobs []history.Job) string {
	count := map[string]int{}
	for _, j := range jobs {
		for _, l := range j.Labels {
			count[l]++
		}
	}
	labels := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	if len(labels) == 0 {
		return "The jobs have no labels recorded."
	}
	var named []string
	for _, l := range labels[:min(len(labels), labelsNamed)] {
		named = append(named, fmt.Sprintf("%.60q", l))
	}
	return fmt.Sprintf("The jobs have the labels %s.", strings.Join(named, ", "))
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

With --history or --from-github it plays recorded jobs on a fleet with a policy, without calling a controld, and says how long they would have waited,
how their hosts would have come and what they would have cost: docs/planning.md.`,
		Example: "  remuda plan\n  remuda plan --at 02:00\n  controld snapshot --config controld.yaml | remuda plan --snapshot -\n" +
			"  remuda plan --history jobs.csv --policy tried.yaml --present controld.yaml\n  remuda plan --history jobs.csv --optimize --wait 20s\n" +
			"  remuda plan --from-github acme --since 30d --save jobs.csv --policy tried.yaml",
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
