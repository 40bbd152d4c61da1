package jobs_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"sync"

	"github.com/remuda-ci/remuda/internal/local"
)

// journal is controld's log, which a process writes while a test reads it.
type journal struct {
	local.Log

	mu      sync.Mutex
	rest    []byte // of a line that has not ended
	entries []entry
}

// entry is what the tests read of a line.
type entry struct {
	Message string `json:"@message"`
	Move    string `json:"move"`   // of "slot moved"
	Job     int64  `json:"job"`    // of "slot moved"
	Result  string `json:"result"` // of "webhook worked on"
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.Log.Write(p) // a log takes everything
	j.rest = append(j.rest, p...)
	for {
		line, rest, found := bytes.Cut(j.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		var e entry
		if json.Unmarshal(line, &e) == nil { // others than controld write here too
			j.entries = append(j.entries, e)
		}
		j.rest = rest
	}
}

// moves are the jobs of the moves of a kind, in their order.
func (j *journal) moves(kind string) []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []int64
	for _, e := range j.entries {
		if e.Message == "slot moved" && e.Move == kind {
			list = append(list, e.Job)
		}
	}
	return list
}

// results counts the webhooks by what came of them, where that has a pattern.
func (j *journal) results(pattern string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, e := range j.entries {
		if e.Message == "webhook worked on" && regexp.MustCompile(pattern).MatchString(e.Result) {
			n++
		}
	}
	return n
}

// count is how many lines have a message.
func (j *journal) count(message string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, e := range j.entries {
		if e.Message == message {
			n++
		}
	}
	return n
}

var (
	heardWaiting = regexp.MustCompile(`^job (\d+) is waiting$`)
	heardRunning = regexp.MustCompile(`^job (\d+) runs on `)
	heardOver    = regexp.MustCompile(`^job (\d+) is over`)
)

// heard are the jobs whose webhook had a result, in the order of their webhooks.
func (j *journal) heard(pattern *regexp.Regexp) []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []int64
	for _, e := range j.entries {
		if m := pattern.FindStringSubmatch(e.Result); m != nil {
			id, _ := strconv.ParseInt(m[1], 10, 64) // digits, by the pattern
			list = append(list, id)
		}
	}
	return list
}
