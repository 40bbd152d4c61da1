package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v4"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// always is the one condition that a job may have.
var always = regexp.MustCompile(`^\s*(always\(\)|\$\{\{\s*always\(\)\s*\}\})\s*$`)

type parser struct {
	problems []problem
	kinds    map[actionlint.Pos]string // YAML tag of each scalar, which actionlint's tree leaves out
}

type problem struct {
	line, col int
	text      string
}

// Parse reads a workflow file. Its error is an *Invalid.
func Parse(source []byte) (*Workflow, error) {
	p := &parser{}
	tree, errs := actionlint.Parse(source)
	for _, e := range errs {
		p.problems = append(p.problems, problem{e.Line, e.Column, e.Message})
	}
	if len(errs) > 0 || tree == nil {
		return nil, p.err()
	}
	p.kinds = scalarKinds(source)
	w := p.workflow(tree)
	p.checkNeeds(tree)
	if len(p.problems) > 0 {
		return nil, p.err()
	}
	return w, nil
}

func (p *parser) err() error {
	slices.SortStableFunc(p.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col))
	})
	var out Invalid
	for _, b := range p.problems {
		out.Problems = append(out.Problems, fmt.Sprintf("line %d, column %d: %s", b.line, b.col, b.text))
	}
	return &out
}

// refuse notes a construct that the stand-in does not take, by the name the file gives it.
func (p *parser) refuse(pos *actionlint.Pos, construct, detail string) {
	text := construct + " is not supported by the GitHub stand-in"
	if detail != "" {
		text += ": " + detail
	}
	p.problems = append(p.problems, problem{pos.Line, pos.Col, text})
}

func (p *parser) invalid(pos *actionlint.Pos, format string, args ...any) {
	p.problems = append(p.problems, problem{pos.Line, pos.Col, fmt.Sprintf(format, args...)})
}

func (p *parser) workflow(t *actionlint.Workflow) *Workflow {
	w := &Workflow{}
	if t.Name != nil {
		w.Name = t.Name.Value
	}
	if t.RunName != nil {
		w.RunName = p.template(t.RunName, "run-name", "github")
	}
	if t.Concurrency != nil {
		p.refuse(t.Concurrency.Pos, `"concurrency"`, "")
	}
	w.env = p.env(t.Env, "env", "github")
	for _, j := range sortedJobs(t) {
		job := p.job(j, t.Defaults)
		job.IDToken = grantsIDToken(cmp.Or(j.Permissions, t.Permissions))
		w.Jobs = append(w.Jobs, job)
	}
	return w
}

// grantsIDToken reports whether ID tokens may be asked for. The permissions of a job take the place of the workflow's as a whole, and
// without any there is none to ask for them.
func grantsIDToken(p *actionlint.Permissions) bool {
	if p == nil {
		return false
	}
	if p.All != nil {
		return p.All.Value == "write-all"
	}
	scope := p.Scopes["id-token"]
	return scope != nil && scope.Value != nil && scope.Value.Value == "write"
}

func sortedJobs(t *actionlint.Workflow) []*actionlint.Job {
	return slices.SortedFunc(maps.Values(t.Jobs), func(a, b *actionlint.Job) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

func (p *parser) job(t *actionlint.Job, defaults *actionlint.Defaults) Job {
	p.refuseJobKeys(t)
	j := Job{ID: t.ID.Value, FailFast: true, Always: t.If != nil}
	for _, n := range t.Needs {
		j.Needs = append(j.Needs, n.Value)
	}
	if t.Name != nil {
		j.name = p.template(t.Name, "jobs."+j.ID+".name", "github", "matrix")
	}
	if t.Environment != nil && t.Environment.Name != nil {
		j.environment = p.template(t.Environment.Name, "jobs."+j.ID+".environment", "github", "matrix")
	}
	if t.Concurrency != nil && t.Concurrency.Group != nil {
		j.group = p.template(t.Concurrency.Group, "jobs."+j.ID+".concurrency", "github", "matrix")
	}
	if t.RunsOn != nil {
		j.runsOn = p.runsOn(t.RunsOn, "jobs."+j.ID+".runs-on")
	}
	if t.Strategy != nil {
		p.strategy(t.Strategy, &j)
	}
	j.env = p.env(t.Env, "jobs."+j.ID+".env", "github", "matrix")
	if t.Defaults != nil {
		defaults = t.Defaults
	}
	if t.Container != nil {
		j.steps = append(j.steps, p.container(t.Container, "jobs."+j.ID+".container"))
	}
	for i, s := range t.Steps {
		j.steps = append(j.steps, p.step(s, defaults, fmt.Sprintf("jobs.%s.steps[%d]", j.ID, i)))
	}
	return j
}

// refuseJobKeys names what a job may not have. Of permissions only id-token counts: the stand-in
// hands out no GITHUB_TOKEN to limit.
func (p *parser) refuseJobKeys(t *actionlint.Job) {
	in := "in job " + t.ID.Value
	if t.WorkflowCall != nil {
		p.refuse(t.WorkflowCall.Uses.Pos, `"uses"`, "a reusable workflow "+in)
	}
	if t.If != nil && !always.MatchString(t.If.Value) {
		p.refuse(t.If.Pos, `"if"`, in+`; "always()" is`)
	}
	if t.Services != nil {
		p.refuse(cmp.Or(t.Services.Pos, t.Pos), `"services"`, in)
	}
	if c := t.Concurrency; c != nil && c.CancelInProgress != nil {
		p.refuse(c.CancelInProgress.Pos, `"cancel-in-progress"`, in)
	}
	if t.Snapshot != nil {
		p.refuse(t.Snapshot.ImageName.Pos, `"snapshot"`, in)
	}
	for _, o := range t.Outputs {
		p.refuse(o.Name.Pos, `"outputs"`, in)
	}
	if t.ContinueOnError != nil {
		p.refuse(t.ContinueOnError.Pos, `"continue-on-error"`, in)
	}
	if t.TimeoutMinutes != nil {
		p.refuse(t.TimeoutMinutes.Pos, `"timeout-minutes"`, in)
	}
}

func (p *parser) runsOn(r *actionlint.Runner, where string) []expr.Template {
	if r.Group != nil {
		p.refuse(r.Group.Pos, `"group"`, "in "+where)
	}
	labels := r.Labels
	if r.LabelsExpr != nil {
		labels = []*actionlint.String{r.LabelsExpr}
	}
	var out []expr.Template
	for _, l := range labels {
		out = append(out, p.template(l, where, "github", "matrix"))
	}
	return out
}

func (p *parser) strategy(s *actionlint.Strategy, j *Job) {
	where := "jobs." + j.ID + ".strategy"
	if s.FailFast != nil {
		if s.FailFast.Expression != nil {
			p.refuse(s.FailFast.Pos, "expression", "in "+where+".fail-fast")
		}
		j.FailFast = s.FailFast.Value
	}
	if s.MaxParallel != nil {
		if s.MaxParallel.Expression != nil {
			p.refuse(s.MaxParallel.Pos, "expression", "in "+where+".max-parallel")
		}
		j.MaxParallel = s.MaxParallel.Value
	}
	if s.Matrix != nil {
		j.matrix = p.matrix(s.Matrix, where+".matrix")
	}
}

func (p *parser) env(e *actionlint.Env, where string, allowed ...string) []step.Variable {
	if e == nil {
		return nil
	}
	if e.Expression != nil {
		p.refuse(e.Expression.Pos, "expression", "in place of the mapping "+where)
		return nil
	}
	vars := slices.SortedFunc(maps.Values(e.Vars), func(a, b *actionlint.EnvVar) int {
		return cmp.Or(cmp.Compare(a.Name.Pos.Line, b.Name.Pos.Line), cmp.Compare(a.Name.Pos.Col, b.Name.Pos.Col))
	})
	var out []step.Variable
	for _, v := range vars {
		out = append(out, step.Variable{Name: v.Name.Value, Value: p.template(v.Value, where+"."+v.Name.Value, allowed...)})
	}
	return out
}

func (p *parser) step(t *actionlint.Step, defaults *actionlint.Defaults, where string) step.Step {
	if t.ContinueOnError != nil {
		p.refuse(t.ContinueOnError.Pos, `"continue-on-error"`, "in "+where)
	}
	if t.TimeoutMinutes != nil {
		p.refuse(t.TimeoutMinutes.Pos, `"timeout-minutes"`, "in "+where)
	}
	out := step.Step{Env: p.env(t.Env, where+".env", stepContexts...)}
	if t.ID != nil {
		out.ID = t.ID.Value
	}
	if t.Name != nil {
		out.Name = p.template(t.Name, where+".name", stepContexts...)
	}
	if t.If != nil {
		out.If = p.condition(t.If, where+".if", stepContexts...)
	}
	switch exec := t.Exec.(type) {
	case *actionlint.ExecRun:
		p.script(exec, defaults, where, &out)
	case *actionlint.ExecAction:
		p.action(exec, where, &out)
	}
	return out
}

// stepContexts are the contexts that the keys of a step may use.
var stepContexts = []string{"github", "matrix", "env"}

// action reads a call of an action. The stand-in knows two.
func (p *parser) action(t *actionlint.ExecAction, where string, out *step.Step) {
	if t.Uses == nil {
		return // which the syntax check has refused
	}
	switch out.Uses = t.Uses.Value; out.Uses {
	case step.PrePost:
		p.prePost(t, where, out)
	case step.Remuda:
		for _, input := range sortedInputs(t) {
			out.With = append(out.With, step.Variable{
				Name: input.Name.Value, Value: p.template(input.Value, where+".with."+input.Name.Value, stepContexts...),
			})
		}
	default:
		p.refuse(t.Uses.Pos, `"uses"`, "action "+t.Uses.Value+" in "+where)
	}
}

func sortedInputs(t *actionlint.ExecAction) []*actionlint.Input {
	return slices.SortedFunc(maps.Values(t.Inputs), func(a, b *actionlint.Input) int {
		return cmp.Or(cmp.Compare(a.Name.Pos.Line, b.Name.Pos.Line), cmp.Compare(a.Name.Pos.Col, b.Name.Pos.Col))
	})
}

// prePost reads the scripts of the stand-in's own action.
func (p *parser) prePost(t *actionlint.ExecAction, where string, out *step.Step) {
	into := map[string]*expr.Template{"pre": &out.Pre, "main": &out.Run, "post": &out.Post}
	for name, input := range t.Inputs {
		if into[name] == nil {
			p.refuse(input.Name.Pos, fmt.Sprintf("input %q", name), "of "+step.PrePost+" in "+where)
			continue
		}
		*into[name] = p.template(input.Value, where+".with."+name, stepContexts...)
	}
}

// container reads the container of a job, which may be an image and nothing else.
func (p *parser) container(t *actionlint.Container, where string) step.Step {
	if t.Image == nil || t.Credentials != nil || t.Env != nil || t.Options != nil || len(t.Ports)+len(t.Volumes) > 0 {
		p.refuse(t.Pos, `"container"`, "in "+where+`; "image" alone is`)
		return step.Step{}
	}
	return step.Step{Container: p.template(t.Image, where+".image", "github", "matrix")}
}

func (p *parser) script(run *actionlint.ExecRun, defaults *actionlint.Defaults, where string, out *step.Step) {
	if run.Run != nil {
		out.Run = p.template(run.Run, where+".run", stepContexts...)
	}
	shell, dir := run.Shell, run.WorkingDirectory
	if defaults != nil && defaults.Run != nil {
		shell, dir = cmp.Or(shell, defaults.Run.Shell), cmp.Or(dir, defaults.Run.WorkingDirectory)
	}
	if dir != nil {
		out.WorkingDirectory = p.template(dir, where+".working-directory", stepContexts...)
	}
	if shell != nil {
		out.Shell = shell.Value
		if shell.Value != "bash" && shell.Value != "sh" {
			p.refuse(shell.Pos, fmt.Sprintf("shell %q", shell.Value), "in "+where+`; "bash" and "sh" are`)
		}
	}
}

// scalarKinds notes the YAML tag of every scalar of the file by its place.
func scalarKinds(source []byte) map[actionlint.Pos]string {
	var doc yaml.Node
	kinds := map[actionlint.Pos]string{}
	if yaml.Unmarshal(source, &doc) != nil {
		return kinds
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			kinds[actionlint.Pos{Line: n.Line, Col: n.Column}] = n.ShortTag()
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(&doc)
	return kinds
}
