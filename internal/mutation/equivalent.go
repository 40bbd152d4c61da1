package mutation

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Equivalent is a mutant that no test can find, since it makes no difference that matters.
type Equivalent struct {
	// Change is that of the mutant.
	Change string
	// Why is the reason.
	Why string
}

// file is the path of its file below the root of the module.
func (e Equivalent) file() string {
	path, _, _ := strings.Cut(e.Change, ":")
	return path
}

// ReadEquivalents reads a list: a line "# why", then the changes that it holds for, one a line, as the report prints them. Empty lines do not count.
// A change that a function has several times is in the list as many times as it is equivalent, from the first one on.
func ReadEquivalents(r io.Reader) ([]Equivalent, error) {
	var all []Equivalent
	why := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch text, comment := strings.CutPrefix(line, "#"); {
		case line == "":
			why = ""
		case comment:
			why = strings.TrimSpace(why + " " + strings.TrimSpace(text))
		case why == "":
			return nil, fmt.Errorf("read equivalents: %q has no reason above it", line)
		default:
			all = append(all, Equivalent{line, why})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read equivalents: %w", err)
	}
	return all, nil
}

// apply says why mutants are equivalent, by their number. An equivalent in a file of the packages that is no mutant is an error: the code has
// changed since.
func apply(equivalents []Equivalent, t *tree, mutants []Mutant) (map[int]string, error) {
	whys := map[int]string{}
	var gone []string
	for _, e := range equivalents {
		if !t.has(e.file()) {
			continue
		}
		at := slices.IndexFunc(mutants, func(m Mutant) bool { return whys[m.ID] == "" && m.Change() == e.Change })
		if at < 0 {
			gone = append(gone, e.Change)
			continue
		}
		whys[mutants[at].ID] = e.Why
	}
	if len(gone) > 0 {
		return nil, fmt.Errorf("these equivalents are no mutants any more:\n%s", strings.Join(gone, "\n"))
	}
	return whys, nil
}

// has says whether a file is one of the packages.
func (t *tree) has(file string) bool {
	dir := filepath.Join(t.root, filepath.Dir(filepath.FromSlash(file)))
	return slices.ContainsFunc(t.packages, func(l listed) bool { return l.Dir == dir })
}
