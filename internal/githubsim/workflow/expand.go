package workflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// Plan is one job of a run: a job of the file with one combination of its matrix.
type Plan struct {
	Job    string            // the id of the job in the file
	Name   string            // as GitHub shows it
	Labels []string          // of runs-on
	Matrix map[string]any    // nil without a matrix
	Env    map[string]string // of the workflow and the job
	Steps  []step.Step
	// Environment is the one that the job is deployed to, and Group its concurrency group; empty: none.
	Environment, Group string
}

// Expand makes the jobs of a run, in the order of the file and of each matrix. github is the context of that name.
func (w *Workflow) Expand(github map[string]any) ([]Plan, error) {
	base := expr.Contexts{"github": github}
	env := map[string]string{}
	if err := render(w.env, base, env); err != nil {
		return nil, err
	}
	var out []Plan
	for _, j := range w.Jobs {
		plans, err := j.expand(github, env)
		if err != nil {
			return nil, fmt.Errorf("expand job %s: %w", j.ID, err)
		}
		out = append(out, plans...)
	}
	return out, nil
}

func (j Job) expand(github map[string]any, env map[string]string) ([]Plan, error) {
	combos := []chosen{nil}
	if j.matrix != nil {
		var err error
		if combos, err = j.matrix.expand(expr.Contexts{"github": github}); err != nil {
			return nil, err
		}
	}
	var out []Plan
	for _, combo := range combos {
		plan, err := j.plan(github, combo, env)
		if err != nil {
			return nil, err
		}
		out = append(out, plan)
	}
	return out, nil
}

func (j Job) plan(github map[string]any, combo chosen, env map[string]string) (Plan, error) {
	matrix := combo.asMap()
	c := expr.Contexts{"github": github, "matrix": matrix}
	plan := Plan{Job: j.ID, Matrix: matrix, Env: map[string]string{}, Steps: j.steps}
	for k, v := range env {
		plan.Env[k] = v
	}
	if err := render(j.env, c, plan.Env); err != nil {
		return plan, err
	}
	var err error
	if plan.Labels, err = renderLabels(j.runsOn, c); err != nil {
		return plan, err
	}
	if len(plan.Labels) == 0 {
		return plan, fmt.Errorf("runs-on comes to no label")
	}
	if plan.Environment, err = j.environment.Render(c); err != nil {
		return plan, fmt.Errorf("evaluate environment: %w", err)
	}
	if plan.Group, err = j.group.Render(c); err != nil {
		return plan, fmt.Errorf("evaluate concurrency: %w", err)
	}
	plan.Name, err = j.title(combo, c)
	return plan, err
}

// title is the job's name, or its id with the values of its matrix, as GitHub writes it.
func (j Job) title(combo chosen, c expr.Contexts) (string, error) {
	if len(j.name) > 0 {
		return j.name.Render(c)
	}
	var values []string
	for _, a := range combo {
		values = append(values, expr.Text(a.value))
	}
	if len(values) == 0 {
		return j.ID, nil
	}
	return j.ID + " (" + strings.Join(values, ", ") + ")", nil
}

func render(vars []step.Variable, c expr.Contexts, into map[string]string) error {
	for _, v := range vars {
		text, err := v.Value.Render(c)
		if err != nil {
			return fmt.Errorf("evaluate env %s: %w", v.Name, err)
		}
		into[v.Name] = text
	}
	return nil
}

// renderLabels flattens: one entry of runs-on may come to a list from the matrix.
func renderLabels(runsOn []expr.Template, c expr.Contexts) ([]string, error) {
	var out []string
	for _, t := range runsOn {
		v, err := t.Value(c)
		if err != nil {
			return nil, fmt.Errorf("evaluate runs-on: %w", err)
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, l := range list {
			if text := expr.Text(l); text != "" {
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// chosen is one combination with its values.
type chosen []pick

type pick struct {
	name     string
	value    any
	original bool // from a row of the matrix: no include may overwrite it
}

func (c chosen) asMap() map[string]any {
	if c == nil {
		return nil
	}
	out := map[string]any{}
	for _, p := range c {
		out[p.name] = p.value
	}
	return out
}

func (c chosen) at(name string) int {
	return slices.IndexFunc(c, func(p pick) bool { return strings.EqualFold(p.name, name) })
}

func (m *matrix) expand(c expr.Contexts) ([]chosen, error) {
	combos, err := m.product(c)
	if err != nil {
		return nil, err
	}
	if combos, err = m.withoutExcluded(combos, c); err != nil {
		return nil, err
	}
	if combos, err = m.withIncluded(combos, c); err != nil {
		return nil, err
	}
	switch {
	case len(combos) == 0:
		return nil, fmt.Errorf("line %d, column %d: the matrix comes to no job", m.pos.Line, m.pos.Col)
	case len(combos) > maxMatrixJobs:
		return nil, fmt.Errorf("line %d, column %d: the matrix comes to %d jobs, GitHub allows %d", m.pos.Line, m.pos.Col, len(combos), maxMatrixJobs)
	}
	return combos, nil
}

func (m *matrix) product(c expr.Contexts) ([]chosen, error) {
	if len(m.rows) == 0 {
		return nil, nil
	}
	combos := []chosen{{}}
	for _, r := range m.rows {
		var next []chosen
		if len(combos)*len(r.values) > 16*maxMatrixJobs { // an exclude may still bring it down, but not from anywhere
			return nil, fmt.Errorf("line %d, column %d: the matrix comes to more than %d combinations", m.pos.Line, m.pos.Col, 16*maxMatrixJobs)
		}
		for _, combo := range combos {
			for _, v := range r.values {
				got, err := v(c)
				if err != nil {
					return nil, err
				}
				next = append(next, append(slices.Clone(combo), pick{r.name, got, true}))
			}
		}
		combos = next
	}
	return combos, nil
}

func (m *matrix) withoutExcluded(combos []chosen, c expr.Contexts) ([]chosen, error) {
	for _, ex := range m.exclude {
		want, err := ex.choose(c)
		if err != nil {
			return nil, err
		}
		combos = slices.DeleteFunc(combos, func(have chosen) bool { return want.within(have) })
	}
	return combos, nil
}

func (c combination) choose(ctx expr.Contexts) (chosen, error) {
	var out chosen
	for _, a := range c {
		v, err := a.value(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, pick{name: a.name, value: v})
	}
	return out, nil
}

func (c chosen) within(have chosen) bool {
	for _, p := range c {
		i := have.at(p.name)
		if i < 0 || !reflect.DeepEqual(have[i].value, p.value) {
			return false
		}
	}
	return true
}

// withIncluded adds each entry to every combination whose original values it leaves alone, or else makes a job of its own of
// it (https://docs.github.com/en/actions/how-tos/write-workflows/choose-what-workflows-do/run-job-variations).
func (m *matrix) withIncluded(combos []chosen, c expr.Contexts) ([]chosen, error) {
	fromRows := len(combos)
	for _, in := range m.include {
		add, err := in.choose(c)
		if err != nil {
			return nil, err
		}
		added := false
		for i := range combos[:fromRows] {
			if add.overwrites(combos[i]) {
				continue
			}
			added = true
			combos[i] = combos[i].with(add)
		}
		if !added {
			combos = append(combos, add)
		}
	}
	return combos, nil
}

func (c chosen) overwrites(have chosen) bool {
	for _, p := range c {
		if i := have.at(p.name); i >= 0 && have[i].original && !reflect.DeepEqual(have[i].value, p.value) {
			return true
		}
	}
	return false
}

func (c chosen) with(add chosen) chosen {
	out := slices.Clone(c)
	for _, p := range add {
		if i := out.at(p.name); i >= 0 {
			out[i].value = p.value
		} else {
			out = append(out, p)
		}
	}
	return out
}
