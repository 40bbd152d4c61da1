package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// costs has a sentence for each function that was among the largest costs: how it was mended, or why it stays. It is kept by hand.
//
//go:embed costs.txt
var costs string

// unexplained is said of a function that costs lacks.
const unexplained = "not explained yet"

// explained is the sentence of a function.
func explained(_ figures, function string) (sentence, _ string) {
	for line := range strings.Lines(costs) {
		if name, sentence, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name == function {
			return sentence, "-"
		}
	}
	return unexplained, "-"
}

// The benchmarks that are profiled.
var (
	callers64 = bench{pattern: "Callers/store=sqlite/callers=64$", time: "6000x", count: 1}
	hosts200  = bench{pattern: "Request/200$", time: "200x", count: 1}
)

// profile are the five functions in which most of the processor time of the closed loop is spent.
func profile(ctx context.Context, _ part) (figures, error) {
	out, err := profiled(ctx, callers64, "-nodecount=5")
	if err != nil {
		return figures{}, err
	}
	return topOf(out)
}

// profiled is what pprof's -top prints of a benchmark.
func profiled(ctx context.Context, b bench, args ...string) (string, error) {
	dir, err := os.MkdirTemp("", "remuda-profile")
	if err != nil {
		return "", fmt.Errorf("profile: %w", err)
	}
	defer os.RemoveAll(dir)
	program, file := filepath.Join(dir, "bench.test"), filepath.Join(dir, "cpu.prof")
	b.args = []string{"-cpuprofile", file, "-o", program}
	if _, err := b.run(ctx); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", append(append([]string{"tool", "pprof", "-top"}, args...), program, file)...).Output()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w", err)
	}
	return string(out), nil
}

// area is a part of what controld does: functions with all that they call.
type area struct {
	name, sentence string
	functions      []string
}

const ownPath = "github.com/remuda-ci/remuda/internal/"

// areas overlap: a row that is read comes from JSON within the read.
var areas = []area{
	{
		"writes of SQLite", "each host has rows of its own for record, report and events, each with its condition; they share commits",
		[]string{ownPath + "store/sqlite/db.(*DB).transact"},
	},
	{"reads of SQLite", "a release makes 5 batched reads", []string{ownPath + "store/sqlite/db.(*DB).Read"}},
	{"rows to JSON and back", "a record is a document, so that versions of controld can differ", []string{
		"encoding/json.Marshal", "github.com/go-json-experiment/json.Unmarshal",
	}},
	{"decisions", "each step of a host is decided by its facts", []string{ownPath + "lifecycle.Decide", ownPath + "lifecycle.Apply"}},
	{"collection of garbage", "of records, documents and messages", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc"}},
	{"system calls", "the log of SQLite, its locks, and sockets", []string{"internal/runtime/syscall/linux.Syscall6"}},
}

// spentBy is how much of the processor time each area takes in the two benchmarks.
func spentBy(ctx context.Context, p part) (figures, error) {
	found := figures{values: map[string]map[string][]float64{}}
	for i, b := range []bench{callers64, hosts200} {
		out, err := profiled(ctx, b, "-cum", "-nodecount=0", "-nodefraction=0")
		if err != nil {
			return figures{}, err
		}
		all, err := spentIn(out)
		if err != nil {
			return figures{}, err
		}
		for _, a := range areas {
			if found.values[a.name] == nil {
				found.names, found.values[a.name] = append(found.names, a.name), map[string][]float64{}
			}
			found.values[a.name][p.columns[i].unit] = []float64{a.of(all)}
		}
	}
	return found, nil
}

func (a area) of(all []spent) (sum float64) {
	for _, s := range all {
		if slices.Contains(a.functions, s.function) {
			sum += s.cumulative
		}
	}
	return sum
}

// reason is why an area costs what it does.
func reason(_ figures, name string) (sentence, _ string) {
	for _, a := range areas {
		if a.name == name {
			return a.sentence, "-"
		}
	}
	return unexplained, "-"
}

// spent is what a line of pprof's -top says of a function: the parts of the time in percent, of itself and with all that it calls.
type spent struct {
	function         string
	flat, cumulative float64
}

// spentIn reads the lines of pprof's -top: flat, flat%, sum%, cum, cum% and the function.
func spentIn(out string) (all []spent, err error) {
	_, table, found := strings.Cut(out, "cum%\n")
	if !found {
		return nil, fmt.Errorf("go tool pprof printed no table: %.200q", out)
	}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		flat, wrongFlat := percent(fields[1])
		cumulative, wrong := percent(fields[4])
		if err := errors.Join(wrongFlat, wrong); err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		all = append(all, spent{fields[5], flat, cumulative})
	}
	return all, nil
}

func percent(text string) (float64, error) {
	return strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
}

// topOf are the functions by their own time.
func topOf(out string) (figures, error) {
	all, err := spentIn(out)
	top := figures{values: map[string]map[string][]float64{}}
	for _, s := range all {
		top.names = append(top.names, s.function)
		top.values[s.function] = map[string][]float64{"%": {s.flat}}
	}
	return top, err
}
