package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// timeout is for one package on a machine that is busy.
const timeout = "15m"

// stopWithin is how long an interrupted go test may take to stop its tests.
const stopWithin = 20 * time.Second

// pass is one go test of several packages.
type pass struct {
	name     string
	flags    []string
	environ  []string
	packages []string
	// atOnce is how many packages are built and tested at the same time.
	atOnce int

	results map[string]*result // by package
	err     error              // of go test, which also reports failed tests
}

// result is that of a package.
type result struct {
	outcome string // pass, fail or skip; "" if it was not finished
	cached  bool
	elapsed float64 // seconds
	// tests are the outcomes by the names of tests, subtests too.
	tests map[string]string
	// output is that of tests that are not over, by name, and of the package itself under "".
	output map[string][]string
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// run runs go test and prints what it says of packages and of tests that fail.
func (p *pass) run(ctx context.Context, flags, environ []string) error {
	if len(p.packages) == 0 {
		return nil // go test would take the working directory
	}
	args := slices.Concat([]string{"test", "-json", "-vet=off", "-timeout=" + timeout, "-p=" + strconv.Itoa(p.atOnce)},
		testrun.BuildFlags, p.flags, flags, p.packages)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(environ, p.environ...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWithin
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.results = map[string]*result{}
	readErr := p.read(out)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return readErr
}

func (p *pass) read(out io.Reader) error {
	for dec := json.NewDecoder(out); ; {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, out) // go test must not wait for a reader
			return fmt.Errorf("read what go test says: %w", err)
		}
		p.take(e)
	}
}

// printing: one package at a time, of both passes.
var printing sync.Mutex

func (p *pass) take(e event) {
	if e.Action == "build-output" {
		printing.Lock()
		defer printing.Unlock()
		fmt.Print(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	r := p.results[e.Package]
	if r == nil {
		r = &result{tests: map[string]string{}, output: map[string][]string{}}
		p.results[e.Package] = r
	}
	switch e.Action {
	case "output":
		r.output[e.Test] = append(r.output[e.Test], e.Output)
		r.cached = r.cached || e.Test == "" && strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)")
	case "run":
		r.tests[e.Test] = ""
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.tests[e.Test] = e.Action
			if e.Action != "fail" {
				delete(r.output, e.Test)
			}
			return
		}
		r.outcome, r.elapsed = e.Action, e.Elapsed
		p.print(e.Package, r)
	}
}

// print says how a package came out, with the output of what failed.
func (p *pass) print(pkg string, r *result) {
	printing.Lock()
	defer printing.Unlock()
	if r.outcome == "fail" {
		for _, test := range r.unpassed() {
			fmt.Print(strings.Join(r.output[test], ""))
		}
	}
	took := fmt.Sprintf("%7.1fs", r.elapsed)
	if r.cached {
		took = "  cached"
	}
	fmt.Printf("%-4s %-5s %s  %s\n", r.outcome, p.name, took, strings.TrimPrefix(pkg, module))
}

// unpassed are the tests with output that is worth reading: those that failed or
// did not end, and "", in this order.
func (r *result) unpassed() []string {
	var names []string
	for name := range r.output {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(names, "")
}
