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

// profile are the five functions in which most of the processor time of the closed loop is spent.
func profile(ctx context.Context, _ part) (figures, error) {
	dir, err := os.MkdirTemp("", "remuda-profile")
	if err != nil {
		return figures{}, fmt.Errorf("profile: %w", err)
	}
	defer os.RemoveAll(dir)
	program, file := filepath.Join(dir, "bench.test"), filepath.Join(dir, "cpu.prof")
	b := bench{pattern: "Callers/store=sqlite/callers=64$", time: "6000x", count: 1, args: []string{"-cpuprofile", file, "-o", program}}
	if _, err := b.run(ctx); err != nil {
		return figures{}, err
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=5", program, file).Output()
	if err != nil {
		return figures{}, fmt.Errorf("go tool pprof: %w", err)
	}
	return topOf(string(out))
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
