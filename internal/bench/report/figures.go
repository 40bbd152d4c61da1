package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figures are what benchmarks printed: by the name of the benchmark and then by its unit, a value of each run.
type figures struct {
	names  []string // in the order in which they came
	values map[string]map[string][]float64
}

// cores is the end of a benchmark's name: on how many of them it ran.
var cores = regexp.MustCompile(`-\d+$`)

// parse reads the lines of benchmarks and skips all others.
func parse(in io.Reader) (figures, error) {
	found := figures{values: map[string]map[string][]float64{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cores.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if found.values[name] == nil {
			found.names = append(found.names, name)
			found.values[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return found, fmt.Errorf("read %q: %w", lines.Text(), err)
			}
			found.values[name][fields[i+1]] = append(found.values[name][fields[i+1]], v)
		}
	}
	if err := lines.Err(); err != nil {
		return found, fmt.Errorf("read benchmarks: %w", err)
	}
	return found, nil
}

// add adds what other benchmarks printed.
func (f *figures) add(other figures) {
	if f.values == nil {
		f.values = map[string]map[string][]float64{}
	}
	f.names = append(f.names, other.names...)
	for name, units := range other.values {
		f.values[name] = units
	}
}

// median is the middle of a benchmark's values in a unit; ok is false without any.
func (f figures) median(name, unit string) (value float64, ok bool) {
	v := slices.Sorted(slices.Values(f.values[name][unit]))
	if len(v) == 0 {
		return 0, false
	}
	return v[len(v)/2], true
}

// spread is half of what lies between the least and the most of the values, in parts of the median.
func (f figures) spread(name, unit string) float64 {
	v := f.values[name][unit]
	m, ok := f.median(name, unit)
	if !ok || m == 0 {
		return 0
	}
	return (slices.Max(v) - slices.Min(v)) / 2 / m
}

// bench are benchmarks that are run together: -bench, -benchtime and -count of go test.
type bench struct {
	pattern, time string
	count         int
	args          []string
	in            string // the package; empty: that of most benchmarks
}

func (b bench) command() []string {
	args := []string{"test", "-run", "^$", "-bench", b.pattern, "-benchtime", b.time, "-count", strconv.Itoa(b.count)}
	return append(append(args, b.args...), cmp.Or(b.in, "./internal/bench"))
}

// run runs the benchmarks. What one that failed has printed before counts.
func (b bench) run(ctx context.Context) (figures, error) {
	out, err := exec.CommandContext(ctx, "go", b.command()...).CombinedOutput()
	found, wrong := parse(strings.NewReader(string(out)))
	switch {
	case wrong != nil:
		return found, wrong
	case err != nil:
		return found, fmt.Errorf("go %s: %w: %s", strings.Join(b.command(), " "), err, firstFailure(string(out)))
	}
	return found, nil
}

// firstFailure is the first line that says why benchmarks failed.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic:") {
			return strings.TrimSpace(line)
		}
	}
	return "no reason given"
}
