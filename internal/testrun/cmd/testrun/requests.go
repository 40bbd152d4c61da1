package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// requestsFile is what package awstest calls Requests.
	requestsFile = "requests"
	// fewestRequests is how many requests to AWS a whole run validates at least. It validates many times as many: with fewer, a way past the
	// check has come up.
	fewestRequests = 10_000
)

// requests are what the test binaries have validated of what they sent to AWS.
type requests struct {
	// services are the counts of operations by their service.
	services map[string]map[string]int
	illegal  []string
}

// readRequests adds up what the test binaries have handed over.
func readRequests(dir string) (requests, error) {
	all := requests{services: map[string]map[string]int{}}
	content, err := os.ReadFile(filepath.Join(dir, requestsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, fmt.Errorf("read the requests to AWS: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if err := all.add(strings.TrimSuffix(line, "\n")); err != nil {
			return all, err
		}
	}
	slices.Sort(all.illegal)
	return all, nil
}

func (r *requests) add(line string) error {
	if sentence, ok := strings.CutPrefix(line, "illegal "); ok {
		r.illegal = append(r.illegal, sentence)
		return nil
	}
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != "ok" {
		return fmt.Errorf("read the requests to AWS: %q is no line of them", line)
	}
	n, err := strconv.Atoi(words[3])
	if err != nil {
		return fmt.Errorf("read the requests to AWS: %q: %w", line, err)
	}
	if r.services[words[1]] == nil {
		r.services[words[1]] = map[string]int{}
	}
	r.services[words[1]][words[2]] += n
	return nil
}

// summary is one line for all, and one for each illegal request. It fails for these, and for too few in a whole run.
func (r *requests) summary(whole bool) (lines []string, ok bool) {
	total, parts := 0, []string{}
	for _, service := range slices.Sorted(maps.Keys(r.services)) {
		n := 0
		for _, of := range r.services[service] {
			n += of
		}
		total += n
		parts = append(parts, fmt.Sprintf("%s %d in %d operations", service, n, len(r.services[service])))
	}
	lines = append(lines, fmt.Sprintf("%d requests to AWS held against its service models, %d illegal (%s)", total, len(r.illegal), strings.Join(parts, ", ")))
	for _, sentence := range r.illegal {
		lines = append(lines, "ILLEGAL: "+sentence)
	}
	if whole && total < fewestRequests {
		lines = append(lines, fmt.Sprintf("TOO FEW requests to AWS: a whole run holds at least %d against the models", fewestRequests))
		return lines, false
	}
	return lines, len(r.illegal) == 0
}

// reportRequests prints the summary. It fails if that does; dir is "" if no test asks AWS.
func reportRequests(dir string, whole bool) error {
	if dir == "" {
		return nil
	}
	r, err := readRequests(dir)
	if err != nil {
		return err
	}
	lines, ok := r.summary(whole)
	for _, line := range lines {
		fmt.Println(line)
	}
	if !ok {
		return errFailed
	}
	return nil
}

// complete reports whether all tests ran that ask AWS: of the whole module, without flags that choose among them, and none with a result of an
// earlier run.
func complete(all []testPackage, patterns, flags []string, passes []*pass) bool {
	if !slices.Equal(patterns, []string{"./..."}) || slices.ContainsFunc(flags, func(f string) bool { return f != "-count=1" }) {
		return false
	}
	for _, p := range all {
		for _, of := range passes {
			if r := of.results[p.ImportPath]; p.asksAWS && r != nil && r.cached {
				return false
			}
		}
	}
	return true
}
