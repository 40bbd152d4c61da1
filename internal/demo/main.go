// Command demo shows Remuda at work on this machine: a workflow served cold, the next one warm by the same
// hosts, a third that needs more than the pool has, three by hosts that listen already, hosts that expire, and nothing
// left behind. It exits 0 only if all of that happened, and if the hot hosts were ready in time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/demo/stage"
)

// within bounds the whole demo, which takes a minute where nothing else runs.
const within = 10 * time.Minute

func main() { stage.Main("demo", run) }

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory with controld, agentd and standin-runner")
	examples := flags.String("examples", "examples", "directory with the sample workflows")
	keep := flags.Bool("keep", false, "keep the state directory, with controld's log")
	slow := realistic
	flags.DurationVar(&slow.API, "api-time", slow.API, "how long each call to the GitHub stand-in takes, a `TIME`")
	flags.DurationVar(&slow.Configure, "configure-time", slow.Configure, "how long its runner's config.sh takes, a `TIME`")
	flags.DurationVar(&slow.Listen, "listen-time", slow.Listen, "how long its runner's listener takes before it opens its session, a `TIME`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %s", within))
	defer cancel()

	s, err := stage.New(out)
	if err != nil {
		return err
	}
	defer func() { err = s.Close(err, *keep) }()
	d := &demo{Stage: s, examples: *examples, slow: slow}
	if err := d.start(ctx, *bin); err != nil {
		return err
	}
	if err := errors.Join(d.play(ctx), d.Stop()); err != nil {
		return err
	}
	d.summary()
	return d.checkTimes()
}

// start starts the system. Hosts boot for a while, so that cold and warm starts differ, and expire soon.
func (d *demo) start(ctx context.Context, bin string) error {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("ask go for its build cache: %w", err)
	}
	return d.Start(ctx, bin, fmt.Sprintf(configuration, strings.TrimSpace(string(cache))), d.slow)
}
