package workflow

import (
	"strings"

	"github.com/rhysd/actionlint"
)

// checkNeeds reports a need that no job meets and needs that go round in a circle.
func (p *parser) checkNeeds(t *actionlint.Workflow) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(j *actionlint.Job)
	visit = func(j *actionlint.Job) {
		id := strings.ToLower(j.ID.Value)
		state[id] = visiting
		for _, n := range j.Needs {
			key := strings.ToLower(n.Value)
			needed, ok := t.Jobs[key]
			switch {
			case !ok:
				p.invalid(n.Pos, "job %q needs %q, which is not a job of this workflow", j.ID.Value, n.Value)
			case state[key] == visiting:
				p.invalid(n.Pos, "job %q needs %q, which needs it in turn", j.ID.Value, n.Value)
			case state[key] != done:
				visit(needed)
			}
		}
		state[id] = done
	}
	for _, j := range sortedJobs(t) {
		if state[strings.ToLower(j.ID.Value)] != done {
			visit(j)
		}
	}
}
