package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/remuda-ci/remuda/internal/local"
)

// What the workflow prints.
var (
	tookLine  = regexp.MustCompile(`(?m)^took ([0-9.]+) s$`)
	leftLine  = regexp.MustCompile(`(?m)^left a mark in (\S+)$`)
	foundLine = regexp.MustCompile(`(?m)^found the mark of run ([0-9]+) in (\S+)$`)
)

// Read takes from the logs of a run of the workflow how long its builds took, and whose marks it found in which cache.
func (s *Step) Read(run local.Run) (err error) {
	s.Found = map[string][]string{}
	for _, j := range run.Jobs {
		switch j.Name {
		case "go":
			s.Go, err = took(j)
		case "npm":
			s.NPM, err = took(j)
		case "marks":
			for _, left := range leftLine.FindAllStringSubmatch(j.Log, -1) {
				s.Found[left[1]] = []string{}
			}
			for _, found := range foundLine.FindAllStringSubmatch(j.Log, -1) {
				s.Found[found[2]] = append(s.Found[found[2]], found[1])
			}
		}
		if err != nil {
			return err
		}
	}
	for _, found := range s.Found {
		slices.Sort(found)
	}
	return nil
}

// took is how long the build of a job took, in seconds.
func took(j local.Job) (float64, error) {
	line := tookLine.FindStringSubmatch(j.Log)
	if line == nil {
		return 0, fmt.Errorf("the job %s does not say how long it took:\n%s", j.Name, j.Log)
	}
	return strconv.ParseFloat(line[1], 64)
}
