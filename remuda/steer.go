package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
)

func newProvision(app *cli.App) *cobra.Command {
	var f cli.ProvisionFlags
	c := &cobra.Command{
		Use: "provision RUN", Short: "Get hosts for a run and wait until they are ready", GroupID: groupSteer, Args: cobra.RangeArgs(1, 2),
		Long: `provision gets hosts for a run and waits until they are ready, for at most --within. What it waits for is on stderr.
When it is interrupted the request goes on. The same --request-id resumes a request.`,
		Example: "  remuda provision acme/shop/41 --count 2\n  remuda provision acme/shop 41 --pool default --class large --spot --on-demand-fallback",
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("count") && f.Count < 1 {
				return failure.Misused("--count %d: write 1 or more", f.Count)
			}
			return failure.Of("", app.Provision(c.Context(), args, f))
		},
	}
	flags := c.Flags()
	flags.Int32Var(&f.Count, "count", 0, "how many `HOSTS` (default 1)")
	flags.Int32Var(&f.Minimum, "minimum", 0, "how many `HOSTS` are enough when the time is over (default: all)")
	flags.Int32Var(&f.Attempt, "attempt", 0, "the `ATTEMPT` of the run (default 1)")
	flags.StringVar(&f.Pool, "pool", "", "the `POOL` (default \"default\")")
	flags.StringVar(&f.Class, "class", "", "the resource `CLASS` (default \"large\")")
	flags.BoolVar(&f.Spot, "spot", false, "spot capacity instead of on-demand")
	flags.BoolVar(&f.OnDemandFallback, "on-demand-fallback", false, "on-demand will do when there is no spot capacity")
	flags.BoolVar(&f.ReplaceInterrupted, "replace-interrupted", false, "another host in the place of one that EC2 interrupts")
	flags.StringSliceVar(&f.Types, "type", nil, "`PATTERNS` of instance types that will do, such as c6i.*")
	flags.StringSliceVar(&f.Labels, "label", nil, "`LABELS` of the runners beside the run's id")
	flags.DurationVar(&f.MaxRuntime, "max-runtime", 0, "the longest `TIME` that a host may run (default: the pool's)")
	flags.DurationVar(&f.Within, "within", 0, "wait for hosts for this `TIME`, at most 30m (default 10m)")
	flags.StringVar(&f.RequestID, "request-id", "", "the `ID` of the request: sent again it resumes")
	return c
}

func newRelease(app *cli.App) *cobra.Command {
	var f cli.ReleaseFlags
	c := &cobra.Command{
		Use: "release RUN", Short: "Give back the hosts of a run; a busy one finishes its job first", GroupID: groupSteer, Args: cobra.RangeArgs(1, 2),
		Example: "  remuda release acme/shop/41\n  remuda release acme/shop/41 --wait",
		RunE:    func(c *cobra.Command, args []string) error { return failure.Of("", app.Release(c.Context(), args, f)) },
	}
	c.Flags().BoolVar(&f.Wait, "wait", false, "wait until each host is clean and pooled, or has failed")
	c.Flags().Int32Var(&f.Attempt, "attempt", 0, "the `ATTEMPT` that has ended (default: the newest)")
	return c
}

func newHold(app *cli.App) *cobra.Command {
	var f cli.HoldFlags
	c := &cobra.Command{
		Use: "hold HOST...|--all", Short: "Keep hosts, or the whole fleet, from being ended for some time", GroupID: groupSteer,
		Example: "  remuda hold i-0b22a22eec53b9321 --for 2h --reason 'a full disk'\n  remuda hold i-0b22a22eec53b9321 --off\n" +
			"  remuda hold --all --for 1h --reason 'hosts end and the cause is unknown'",
		ValidArgsFunction: completeHosts(app),
		RunE:              func(c *cobra.Command, args []string) error { return failure.Of("", app.Hold(c.Context(), args, f)) },
	}
	c.Flags().BoolVar(&f.All, "all", false, "the whole fleet: no host is ended, whatever its deadline")
	c.Flags().DurationVar(&f.For, "for", time.Hour, "for so long a `TIME` from now, at most 24h")
	c.Flags().BoolVar(&f.Off, "off", false, "end the hold")
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the record")
	return c
}

func newDrain(app *cli.App) *cobra.Command {
	var f cli.DrainFlags
	c := &cobra.Command{
		Use: "drain HOST...|--pool POOL|--all", Short: "Have hosts leave once they have no run; no job ends by it", GroupID: groupSteer,
		Long: `drain has hosts leave: one without a run ends at once, any other once its run has released it, and no other run gets it.
Hosts that are launched later are not drained. It cannot be taken back, so --pool and --all ask on a terminal, and elsewhere need --yes.`,
		Example:           "  remuda drain i-0b22a22eec53b9321 --reason 'its disk is slow'\n  remuda drain --pool default --reason 'a new image'",
		ValidArgsFunction: completeHosts(app),
		RunE:              func(c *cobra.Command, args []string) error { return failure.Of("", app.Drain(c.Context(), args, f)) },
	}
	c.Flags().StringVar(&f.Pool, "pool", "", "the hosts that this `POOL` has now")
	c.Flags().BoolVar(&f.All, "all", false, "every host that the fleet has now")
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the record")
	c.Flags().BoolVarP(&f.Yes, "yes", "y", false, "do not ask")
	return c
}

func newPause(app *cli.App) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "pause POOL", Short: "Have a pool give out and launch no host; what runs goes on", GroupID: groupSteer, Args: cobra.ExactArgs(1),
		Long: `pause has a pool give out no host and launch none. Requests and jobs wait, and ` + "`remuda why`" + ` names the pause. Hosts that serve a run
go on, and so does a launch that is under way. Every controld knows within 5 seconds.`,
		Example:           "  remuda pause default --reason 'a new image'",
		ValidArgsFunction: completePools(app),
		RunE: func(c *cobra.Command, args []string) error {
			return failure.Of("", app.Pause(c.Context(), args[0], reason))
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "`WHY`, for the record")
	return c
}

func newResume(app *cli.App) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "resume POOL", Short: "End the pause of a pool", GroupID: groupSteer, Args: cobra.ExactArgs(1),
		Example:           "  remuda resume default",
		ValidArgsFunction: completePools(app),
		RunE: func(c *cobra.Command, args []string) error {
			return failure.Of("", app.Resume(c.Context(), args[0], reason))
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "`WHY`, for the record")
	return c
}

func newCache(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "cache", Short: "Drop a cache that outlives runs", GroupID: groupSteer, Args: cobra.NoArgs,
		Long: "cache steers the caches of pools, which outlive runs. `remuda ps -o wide` shows what hosts have of them.",
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCacheRm(app))
	return c
}

func newCacheRm(app *cli.App) *cobra.Command {
	var f cli.DropFlags
	c := &cobra.Command{
		Use: "rm NAME --repository OWNER/NAME", Short: "Have the hosts of a pool delete a cache before their next run", Args: cobra.ExactArgs(1),
		Long: `rm has the hosts of a pool delete a cache before their next run, and keep nothing that their present run leaves in it. A run that
has a host now keeps its view of it. A cache whose scope is owner is named by the owner alone.`,
		Example: "  remuda cache rm go --repository acme/shop --reason 'a poisoned module'\n  remuda cache rm tools --pool build --repository acme",
		RunE: func(c *cobra.Command, args []string) error {
			if f.Repository == "" {
				return failure.Misused("name whose cache it is: --repository OWNER/NAME, or an owner if the cache is an owner's")
			}
			return failure.Of("", app.DropCache(c.Context(), args[0], f))
		},
	}
	c.Flags().StringVar(&f.Pool, "pool", "default", "the `POOL` whose cache it is")
	c.Flags().StringVar(&f.Repository, "repository", "", "whose cache it is: `OWNER/NAME`, or an owner if its scope is owner")
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the record")
	_ = c.RegisterFlagCompletionFunc("pool", completePools(app)) // it is registered once
	return c
}

func newTerminate(app *cli.App) *cobra.Command {
	var f cli.TerminateFlags
	c := &cobra.Command{
		Use: "terminate HOST... --reason WHY", Short: "End hosts at once, with the jobs on them", GroupID: groupSteer, Args: cobra.MinimumNArgs(1),
		Long:              "terminate ends hosts at once, with the jobs on them. On a terminal it asks first; elsewhere --yes is required.",
		Example:           "  remuda terminate i-0b22a22eec53b9321 --reason 'its disk fails'",
		ValidArgsFunction: completeHosts(app),
		RunE: func(c *cobra.Command, args []string) error {
			return failure.Of("", app.Terminate(c.Context(), args, f))
		},
	}
	c.Flags().StringVar(&f.Reason, "reason", "", "`WHY`, for the record; required")
	c.Flags().BoolVarP(&f.Yes, "yes", "y", false, "do not ask")
	return c
}

func newRefresh(app *cli.App) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "refresh", Short: "Make the world match the configuration and sweep once", GroupID: groupSteer, Args: cobra.NoArgs,
		Example: "  remuda refresh --dry-run",
		RunE:    func(c *cobra.Command, _ []string) error { return failure.Of("", app.Refresh(c.Context(), dry)) },
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing and say what would be done")
	return c
}
