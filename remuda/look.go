package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/view"
)

func newPs(app *cli.App) *cobra.Command {
	var f cli.HostsFlags
	c := &cobra.Command{
		Use: "ps", Short: "Show the hosts: state, run, since when, and what happens next", GroupID: groupLook, Args: cobra.NoArgs,
		Aliases: []string{"hosts"},
		Example: "  remuda ps\n  remuda ps --repository acme/shop --state running\n  remuda ps --all --output wide\n  remuda ps --watch=5s",
		RunE:    func(c *cobra.Command, _ []string) error { return failure.Of("", app.Hosts(c.Context(), f)) },
	}
	hostFilters(c, &f)
	c.Flags().BoolVarP(&f.All, "all", "a", false, "also the hosts that ended in the last 24 hours")
	c.Flags().StringSliceVar(&f.States, "state", nil, "only hosts in one of these `STATES`, or with one of these marks, such as running,held")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(view.States, cobra.ShellCompDirectiveNoFileComp))
	return watched(app, c)
}

func newTop(app *cli.App) *cobra.Command {
	var f cli.HostsFlags
	var every time.Duration
	c := &cobra.Command{
		Use: "top", Short: "Show the hosts live; keys sort, filter, explain, hold and drain", GroupID: groupLook, Args: cobra.NoArgs,
		Long: `top shows the hosts and reads them again and again. The last line names the keys: up and down choose a host, enter says why it is here,
s sorts by pool, state, repository, since or next, r reverses, / filters, h holds for an hour, d drains after a question, q quits.`,
		Example: "  remuda top\n  remuda top --pool default --every 5s",
		RunE:    func(c *cobra.Command, _ []string) error { return failure.Of("", app.Top(c.Context(), f, every)) },
	}
	hostFilters(c, &f)
	c.Flags().DurationVar(&every, "every", defaultWatch, "read the hosts every `TIME`")
	return c
}

func hostFilters(c *cobra.Command, f *cli.HostsFlags) {
	c.Flags().StringVar(&f.Pool, "pool", "", "only hosts of this `POOL`")
	c.Flags().StringVar(&f.Repository, "repository", "", "only hosts of this repository, `OWNER/NAME`, or of an owner; of idle hosts: of their last run")
	c.Flags().StringVar(&f.Run, "run", "", "only hosts of this `RUN`")
}

func newRuns(app *cli.App) *cobra.Command {
	var f cli.HostsFlags
	c := &cobra.Command{
		Use: "runs", Short: "Show the runs that have hosts: ready of those that they have, and busy ones", GroupID: groupLook, Args: cobra.NoArgs,
		Example: "  remuda runs\n  remuda runs --repository acme",
		RunE:    func(c *cobra.Command, _ []string) error { return failure.Of("", app.Runs(c.Context(), f)) },
	}
	hostFilters(c, &f)
	return watched(app, c)
}

func newPools(app *cli.App) *cobra.Command {
	return watched(app, &cobra.Command{
		Use: "pools", Short: "Show the pools and what there is of them", GroupID: groupLook, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Pools(c.Context())) },
	})
}

func newWaiting(app *cli.App) *cobra.Command {
	var pool string
	c := &cobra.Command{
		Use: "waiting", Short: "Show the runs and jobs that wait for hosts, and why", GroupID: groupLook, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Waiting(c.Context(), pool)) },
	}
	c.Flags().StringVar(&pool, "pool", "", "only what waits for hosts of this `POOL`")
	return watched(app, c)
}

func newServices(app *cli.App) *cobra.Command {
	return watched(app, &cobra.Command{
		Use: "services", Short: "Show the services of runners on ECS: runners, jobs and what was decided last", GroupID: groupLook, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Services(c.Context())) },
	})
}

func newCost(app *cli.App) *cobra.Command {
	var f cli.CostFlags
	c := &cobra.Command{
		Use: "cost", Short: "Show what the hosts were used for, and what that cost", GroupID: groupLook, Args: cobra.NoArgs,
		Long: `cost adds up the time of hosts: boot until a runner is ready, busy while a run has the host, clean after a run, and idle in the pool.
The time of a run is charged to it. Idle time, clean-up and the boot of warm hosts are the pool's. Dollars are those of the machines, by the prices of
controld's configuration, without disks, addresses and traffic. Hosts that live count up to now.`,
		Example: "  remuda cost\n  remuda cost --by workflow --since 7d --repository acme\n  remuda cost --by run --since 1d\n" +
			"  remuda cost --by day --since 2026-11-01 --until 2026-11-30 --csv > november.csv",
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Cost(c.Context(), f)) },
	}
	c.Flags().StringVar(&f.By, "by", "repository", "a row for each `KIND`: repository, owner, workflow, run, job, pool, day or type")
	c.Flags().StringVar(&f.Since, "since", "30d", "from this `DAY` on, such as 2026-11-01, or for so many days, such as 30d; days are those of UTC")
	c.Flags().StringVar(&f.Until, "until", "", "up to this `DAY`; none: today")
	c.Flags().StringVar(&f.Pool, "pool", "", "only hosts of this `POOL`")
	c.Flags().StringVar(&f.Repository, "repository", "", "only what this repository used, `OWNER/NAME`, or an owner")
	c.Flags().StringVar(&f.Run, "run", "", "only what this `RUN` used")
	c.Flags().IntVar(&f.Rows, "rows", 0, "this `NUMBER` of rows at most, up to 10000 (default: 100 in a table, else 10000)")
	c.Flags().BoolVar(&f.CSV, "csv", false, "write CSV, with times in seconds")
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(view.CostKinds(), cobra.ShellCompDirectiveNoFileComp))
	return watched(app, c)
}

func newBudgets(app *cli.App) *cobra.Command {
	return watched(app, &cobra.Command{
		Use: "budgets", Short: "Show how much is used of what repositories and owners may spend in this month", GroupID: groupLook, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Budgets(c.Context())) },
	})
}

func newWhy(app *cli.App) *cobra.Command {
	var f cli.WhyFlags
	c := watched(app, &cobra.Command{
		Use: "why RUN|HOST|JOB-URL", Short: "Say why a run has, or does not have yet, its hosts, or why a host is here", GroupID: groupLook,
		Args: cobra.RangeArgs(1, 2),
		Example: "  remuda why acme/shop/41\n  remuda why acme/shop 41\n  remuda why https://github.com/acme/shop/actions/runs/41/job/7\n" +
			"  remuda why i-0b22a22eec53b9321\n  remuda why acme/shop/41 --statement >statements.json",
		ValidArgsFunction: completeHosts(app),
		RunE:              func(c *cobra.Command, args []string) error { return failure.Of("", app.Why(c.Context(), args, f)) },
	})
	c.Flags().BoolVar(&f.Statement, "statement", false, "print the signed statements of the resets before and after the run, or of the host, as lines of JSON")
	return c
}

func newVerifyReset(app *cli.App) *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "verify-reset FILE", Short: "Verify signed statements of resets, without calling controld", GroupID: groupSetUp, Args: cobra.ExactArgs(1),
		Long: `verify-reset verifies the statements that ` + "`remuda why --statement`" + ` has written, or a DSSE envelope with --key, and prints what they say. The key beside
a statement is that of the host's agent as controld knew it before the host's first job: to rely on it is to rely on controld.`,
		Example: "  remuda why acme/shop/41 --statement | remuda verify-reset -\n  remuda verify-reset envelope.json --key " +
			"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=",
		RunE: func(_ *cobra.Command, args []string) error { return failure.Of("", app.VerifyReset(args[0], key)) },
	}
	c.Flags().StringVar(&key, "key", "", "the public `KEY` of the host's agent, 32 bytes in base64 (default: the one beside each statement)")
	return c
}

func newEvents(app *cli.App) *cobra.Command {
	var f cli.EventsFlags
	c := &cobra.Command{
		Use: "events", Short: "Show what happens from now on, and what happened in the last 24 hours", GroupID: groupLook, Args: cobra.NoArgs,
		Example: "  remuda events\n  remuda events --run acme/shop/41\n  remuda events --host i-0b22a22eec53b9321 --follow=false\n" +
			"  remuda events --since 1h --follow=false --repository acme/shop\n  remuda events --output json",
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Events(c.Context(), f)) },
	}
	c.Flags().StringVar(&f.Run, "run", "", "only events of this `RUN`; with its repository, as acme/shop/41, the past ones too")
	c.Flags().StringVar(&f.Host, "host", "", "only events of this `HOST`, the past ones too")
	c.Flags().StringVar(&f.Pool, "pool", "", "only events of this `POOL`, of its hosts, and of what asks for them")
	c.Flags().StringVar(&f.Repository, "repository", "", "only events of this repository, `OWNER/NAME`, or of an owner")
	c.Flags().BoolVarP(&f.Follow, "follow", "f", true, "go on with what happens; --follow=false shows the past alone")
	c.Flags().DurationVar(&f.Since, "since", 0, "the past too, for so long a `TIME`, such as 1h; at most 24h (default: of a run or a host all of it, else none)")
	c.Flags().StringVar(&f.Until, "until", "", "the past up to this `TIME` alone, such as 2026-11-01T06:00:00Z, or up to so long ago, such as 8h")
	_ = c.RegisterFlagCompletionFunc("host", completeHosts(app))
	return c
}
