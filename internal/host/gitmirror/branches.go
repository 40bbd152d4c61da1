package gitmirror

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
	"time"
)

// branches are those that a mirror knows, by the names of their refs.
type branches map[string]branch

type branch struct {
	sha string
	// at is when it was fetched last.
	at time.Time
}

const (
	// packedRefs is git's file of refs, with lines "SHA REF".
	packedRefs = "packed-refs"
	// fetchedAt has lines "SECONDS REF": when each branch was fetched, in Unix time.
	fetchedAt = "fetched-at"
)

// readBranches returns the branches of a mirror; none if there is no mirror yet.
func readBranches(below []string) (branches, error) {
	has := branches{}
	for _, dir := range below {
		refs, err := readLines(filepath.Join(dir, packedRefs))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		times, timesErr := readLines(filepath.Join(dir, fetchedAt))
		for ref, sha := range refs {
			seconds, _ := strconv.ParseInt(times[ref], 10, 64) // without one it is old
			has[ref] = branch{sha, time.Unix(seconds, 0)}
		}
		return has, errors.Join(err, timesErr)
	}
	return has, nil
}

// readLines reads lines "VALUE REF" of branches, and leaves out all others.
func readLines(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		value, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok && strings.HasPrefix(ref, "refs/heads/") {
			values[ref] = value
		}
	}
	return values, nil
}

// makeRoomFor forgets what cannot be there beside a ref: one that is a directory of the other's name was deleted since, and of too many others those
// go that were fetched longest ago.
func (b branches) makeRoomFor(ref string) {
	maps.DeleteFunc(b, func(other string, _ branch) bool {
		return strings.HasPrefix(other, ref+"/") || strings.HasPrefix(ref, other+"/")
	})
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(b)), func(other string) bool { return other == ref })
	slices.SortStableFunc(others, func(x, y string) int { return b[y].at.Compare(b[x].at) })
	for _, other := range others[min(len(others), mostBranches-1):] {
		delete(b, other)
	}
}

func (b branches) packed() string {
	var text strings.Builder
	text.WriteString("# pack-refs with: sorted \n")
	for _, ref := range slices.Sorted(maps.Keys(b)) {
		fmt.Fprintf(&text, "%s %s\n", b[ref].sha, ref)
	}
	return text.String()
}

func (b branches) fetched() string {
	var text strings.Builder
	for _, ref := range slices.Sorted(maps.Keys(b)) {
		fmt.Fprintf(&text, "%d %s\n", b[ref].at.Unix(), ref)
	}
	return text.String()
}
