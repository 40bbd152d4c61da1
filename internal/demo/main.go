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
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
)

// within bounds the whole demo, which takes a minute where nothing else runs.
const within = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		stop()
		os.Exit(1)
	}
}

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

	dir, err := os.MkdirTemp("", "remuda-demo-")
	if err != nil {
		return fmt.Errorf("make a state directory: %w", err)
	}
	logPath := filepath.Join(dir, "controld.log")
	defer func() {
		if err != nil || *keep {
			fmt.Fprintf(out, "\nThe state directory is kept: %s (controld's log: %s)\n", dir, logPath)
			return
		}
		err = os.RemoveAll(dir)
	}()

	d := &demo{out: out, examples: *examples, state: filepath.Join(dir, "state"), slow: slow}
	if err := d.start(ctx, *bin, dir, logPath); err != nil {
		return err
	}
	err = d.play(ctx)
	if stopErr := d.system.Stop(); stopErr != nil {
		err = errors.Join(err, stopErr)
	}
	if err == nil {
		err = d.nothingRuns()
	}
	if err != nil {
		return err
	}
	d.summary()
	return d.checkTimes()
}

// start writes the demo's configuration and starts the system. Hosts boot for
// a while, so that cold and warm starts differ, and expire soon.
func (d *demo) start(ctx context.Context, bin, dir, logPath string) error {
	config := filepath.Join(dir, "controld.yaml")
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("ask go for its build cache: %w", err)
	}
	text := fmt.Sprintf(configuration, strings.TrimSpace(string(cache)))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("write controld's log: %w", err)
	}
	defer log.Close() // controld has its own copy of the descriptor
	d.say("Starting controld, its hosts and the GitHub stand-in on this machine ...")
	d.system, err = local.Start(ctx, local.Options{Bin: bin, StateDir: d.state, Config: config, GitHub: d.slow, Stderr: log})
	return err
}
