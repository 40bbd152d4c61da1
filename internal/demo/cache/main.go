// Command cache shows what the caches of hosts save: a real program in Go and a real web app of npm, built by a workflow file on the embedded
// system, with their dependencies from the registries. It exits 0 only if a warm run is at least three times faster than the first one, downloads
// next to nothing, and finds nothing that a pull request has left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/demo/cache/meter"
	"github.com/remuda-ci/remuda/internal/demo/cache/verdict"
	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/local"
)

// within bounds the whole demo, which takes three minutes on two cores.
const within = 20 * time.Minute

func main() { stage.Main("demo-cache", run) }

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("demo-cache", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory with controld, agentd and standin-runner")
	examples := flags.String("examples", "examples", "directory with the sample workflow and its projects")
	output := flags.String("output", "table", "table, or json for scripts; then what happens is said on the standard error")
	keep := flags.Bool("keep", false, "keep the state directory, with controld's log")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *output != "table" && *output != "json" {
		return fmt.Errorf("--output %q is neither table nor json", *output)
	}
	said := os.Stdout
	if *output == "json" {
		said = os.Stderr
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %s", within))
	defer cancel()

	s, err := stage.New(said)
	if err != nil {
		return err
	}
	defer func() { err = s.Close(err, *keep) }()
	result, err := measure(ctx, s, *bin, *examples, progressOn(said))
	if err != nil {
		return err
	}
	if *output == "json" {
		err = result.WriteJSON(out)
	} else {
		s.Say("")
		err = result.Write(out)
	}
	if err == nil && len(result.Broken) > 0 {
		err = errors.New(strings.Join(result.Broken, "\ndemo-cache: "))
	}
	return err
}

// measure starts the system, with a proxy that counts, and plays the demo on it.
func measure(ctx context.Context, s *stage.Stage, bin, examples string, p *progress) (verdict.Result, error) {
	workflow, err := os.ReadFile(filepath.Join(examples, "workflows", "caches.yml"))
	if err != nil {
		return verdict.Result{}, fmt.Errorf("read the workflow: %w", err)
	}
	source, err := filepath.Abs(filepath.Join(examples, "caches"))
	if err != nil {
		return verdict.Result{}, err
	}
	m, err := meter.Start(http.ProxyFromEnvironment)
	if err != nil {
		return verdict.Result{}, err
	}
	defer m.Close()
	environment, err := environment(ctx, source, m.URL())
	if err != nil {
		return verdict.Result{}, err
	}
	if err := s.Start(ctx, bin, configuration(environment), local.Times{}); err != nil {
		return verdict.Result{}, err
	}
	d := &demo{Stage: s, workflow: string(workflow), meter: m, progress: p}
	if err := errors.Join(d.play(ctx), s.Stop()); err != nil {
		return verdict.Result{}, err
	}
	return verdict.NewResult(d.mechanism, d.steps), nil
}
