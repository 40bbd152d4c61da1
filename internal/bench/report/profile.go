package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		parts, err := cumulated(out)
		if err != nil {
			return figures{}, err
		}
		for _, a := range areas {
			if found.values[a.name] == nil {
				found.names, found.values[a.name] = append(found.names, a.name), map[string][]float64{}
			}
			found.values[a.name][p.columns[i].unit] = []float64{a.of(parts)}
		}
	}
	return found, nil
}

func (a area) of(parts map[string]float64) (sum float64) {
	for _, function := range a.functions {
		sum += parts[function]
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

// cumulated are the parts of the time in percent, by function with all that it calls.
func cumulated(out string) (map[string]float64, error) {
	_, table, found := strings.Cut(out, "cum%\n")
	if !found {
		return nil, fmt.Errorf("go tool pprof printed no table: %.200q", out)
	}
	parts := map[string]float64{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		part, err := strconv.ParseFloat(strings.TrimSuffix(fields[4], "%"), 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		parts[fields[5]] = part
	}
	return parts, nil
}

// topOf reads the lines of pprof's -top: flat, flat%, sum%, cum, cum% and the function.
func topOf(out string) (figures, error) {
	_, table, found := strings.Cut(out, "cum%\n")
	if !found {
		return figures{}, fmt.Errorf("go tool pprof printed no table: %.200q", out)
	}
	top := figures{values: map[string]map[string][]float64{}}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		part, err := strconv.ParseFloat(strings.TrimSuffix(fields[1], "%"), 64)
		if err != nil {
			return figures{}, fmt.Errorf("read %q: %w", line, err)
		}
		top.names = append(top.names, fields[5])
		top.values[fields[5]] = map[string][]float64{"%": {part}}
	}
	return top, nil
}
