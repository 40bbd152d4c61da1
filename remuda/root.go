package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// The groups of the help, in the order in which people meet them.
const (
	groupLook  = "look"
	groupSteer = "steer"
	groupSetUp = "setup"
)

// defaultWatch is how often --watch looks without an interval of its own.
const defaultWatch = 2 * time.Second

func newRoot(app *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "remuda",
		Short: "See and steer a fleet of runners",
		Long: `remuda shows the hosts of a fleet, says why a run waits or a host is here, and steers.

Without a context it calls 127.0.0.1:7443, where ` + "`controld dev`" + ` listens. ` + "`remuda login`" + ` adds a context for another controld.
Exit codes: 0 done, 1 failed, 2 wrong command line, 3 not found, 4 not allowed, 5 unavailable, 6 not enough hosts,
7 the state does not allow it, 130 interrupted.`,
		Version:       telemetry.Version,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetVersionTemplate(telemetry.VersionLine("remuda") + "\n")
	root.AddGroup(&cobra.Group{ID: groupLook, Title: "See:"}, &cobra.Group{ID: groupSteer, Title: "Steer:"}, &cobra.Group{ID: groupSetUp, Title: "Set up:"})
	flags := root.PersistentFlags()
	flags.StringVar(&app.Context, "context", "", "the `NAME` of a context (default: the current one)")
	flags.StringVar(&app.Address, "address", "", "call `HOST:PORT`, with what --context names or with nothing")
	flags.DurationVar(&app.Timeout, "timeout", 0, "the longest `TIME` of each call (default 30s, and as long as the command waits for hosts)")
	flags.StringVar(&app.Snapshot, "snapshot", "", "ask the fleet of this `FILE`, which `controld snapshot` wrote, and no controld; - for standard input")
	flags.VarP(&app.Output, "output", "o", "how answers are printed: table, wide, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp)) // it is registered once
	_ = root.RegisterFlagCompletionFunc("context", completeContexts(app))
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := checkGlobals(app); err != nil {
			return err
		}
		return useSnapshot(app, c)
	}
	root.SetHelpCommandGroupID(groupSetUp)
	root.SetCompletionCommandGroupID(groupSetUp)
	root.AddCommand(newPs(app), newTop(app), newRuns(app), newPools(app), newServices(app), newWaiting(app), newCost(app), newBudgets(app), newWhy(app), newEvents(app), newPlan(app))
	root.AddCommand(newProvision(app), newRelease(app), newHold(app), newDrain(app), newPause(app), newResume(app), newCache(app), newTerminate(app), newRefresh(app))
	root.AddCommand(newLogin(app), newContext(app), newDoctor(app), newVerifyReset(app), newVersion(app), newMan())
	return root
}

func checkGlobals(app *cli.App) error {
	switch {
	case app.Timeout < 0:
		return failure.Misused("--timeout %s is negative", app.Timeout)
	case app.Watch < 0 || app.Watch > 0 && app.Watch < 100*time.Millisecond:
		return failure.Misused("--watch=%s: write 100ms or more", app.Watch)
	}
	return nil
}

// useSnapshot reads the snapshot for a command that looks, and refuses every other.
func useSnapshot(app *cli.App, c *cobra.Command) error {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	switch {
	case app.Snapshot == "":
		return nil
	case c.GroupID == groupSteer:
		return failure.Misused("%s changes a fleet, and --snapshot names a file; leave --snapshot out to call controld", c.Name())
	case c.GroupID != groupLook:
		return failure.Misused("%s does not read a fleet, so --snapshot means nothing to it; leave it out", c.Name())
	case app.Address+app.Context != "":
		return failure.Misused("--snapshot asks no controld; leave --address and --context out, or --snapshot")
	case app.Watch > 0:
		return failure.Misused("--watch: a snapshot does not change; leave --watch out, or --snapshot")
	}
	return app.UseSnapshot()
}

// watched gives a command the flag --watch.
func watched(app *cli.App, c *cobra.Command) *cobra.Command {
	c.Flags().DurationVarP(&app.Watch, "watch", "w", 0, "look again every `TIME`, which is given as --watch=5s")
	c.Flags().Lookup("watch").NoOptDefVal = defaultWatch.String()
	c.Args = withoutInterval(c.Args)
	return c
}

// withoutInterval refuses an argument that is meant as the time of --watch. That flag may have none, so its time is a word of its own to cobra.
func withoutInterval(others cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		for _, arg := range args {
			if _, err := time.ParseDuration(arg); err == nil && c.Flags().Changed("watch") {
				return failure.Misused("--watch and its time are one word: write --watch=%s", arg)
			}
		}
		return others(c, args)
	}
}

func newVersion(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", GroupID: groupSetUp, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(app.Stdout, telemetry.VersionLine("remuda"))
			return failure.Of("write version", err)
		},
	}
}
