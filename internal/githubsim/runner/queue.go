package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// entry is a step in the queue of the step loop.
type entry struct {
	step   step.Step
	prefix string        // of its name: "", "Pre " or "Post "
	script expr.Template // of the step's scripts the one to run
	number int           // among the steps of the job, from 0
	when   expr.Node     // its condition

	// run is set for what is no step of the workflow, such as a hook.
	name string
	run  func(ctx context.Context) error
}

// queue is what runs before and as the steps of the job, in the order of actions/runner 2.336
// (src/Runner.Worker/JobExtension.cs:301-361): the job-started hook, the container, the pre scripts of actions, the steps. Only
// the start of the container waits for success. The completed hook is the first to be registered for the end, and so the last of all.
func (w *worker) queue() (before []entry) {
	always, success := expr.StatusFunction("always"), expr.StatusFunction("success")
	if script := w.environ["ACTIONS_RUNNER_HOOK_JOB_STARTED"]; script != "" {
		before = append(before, entry{name: "Set up runner", when: always, run: w.hook(script)})
	}
	if script := w.environ["ACTIONS_RUNNER_HOOK_JOB_COMPLETED"]; script != "" {
		w.posts = append(w.posts, entry{name: "Complete runner", when: always, run: w.hook(script)})
	}
	var steps []entry
	for i, s := range w.job.Steps {
		e := entry{step: s, number: i, script: s.Run, when: success}
		if s.If != nil {
			e.when = *s.If
		}
		switch {
		case len(s.Container) > 0:
			before = append(before, entry{name: "Initialize containers", when: success, run: w.startContainer})
			continue
		case len(s.Pre) > 0:
			// The default of pre-if (src/Runner.Worker/ActionManifestManager.cs:458).
			before = append(before, entry{step: s, number: i, prefix: "Pre ", script: s.Pre, when: always})
		}
		steps = append(steps, e)
	}
	return append(before, steps...)
}

// runSteps is the step loop (actions/runner 2.336, src/Runner.Worker/StepsRunner.cs:38-280). A step that fails, the job-started hook
// among them, changes the status of the job and nothing else: what comes after it runs if its own condition is met.
func (w *worker) runSteps(ctx context.Context) {
	queue := w.queue()
	for {
		if len(queue) == 0 {
			slices.Reverse(w.posts)
			queue, w.posts = w.posts, nil
		}
		if len(queue) == 0 {
			return
		}
		w.runEntry(ctx, queue[0])
		queue = queue[1:]
	}
}

// runEntry runs one step if its condition is met. No condition is looked at once the runner stops (StepsRunner.cs:191).
func (w *worker) runEntry(ctx context.Context, e entry) {
	if ctx.Err() != nil {
		w.jobEnds(ctx)
	}
	env, err := w.stepEnv(e.step)
	name, nameErr := w.nameOf(e)
	if err == nil && nameErr == nil {
		var met bool
		if met, err = w.met(ctx, e.when, env); err == nil && !met {
			w.skip(name)
			return
		}
	}
	w.begin(name)
	if err = cmp.Or(err, nameErr); err == nil {
		// A step that begins after the job was canceled is not ended by that any more.
		w.ended, w.outlives = ctx.Done(), func() bool {
			met, err := w.met(ctx, e.when, env)
			return met && err == nil
		}
		if ctx.Err() != nil {
			w.ended = nil
		}
		if e.run != nil {
			err = e.run(ctx)
		} else {
			err = w.runStep(ctx, e, env)
		}
	}
	w.end(err)
}

// met reports whether a condition is met.
func (w *worker) met(ctx context.Context, when expr.Node, env map[string]string) (bool, error) {
	if ctx.Err() != nil && !w.canceled(ctx) {
		return false, nil
	}
	c := w.contexts(env)
	c[expr.Status] = w.status
	met, err := when.Holds(c)
	if err != nil {
		err = fmt.Errorf("evaluate if: %w", err)
	}
	return met, err
}

// canceled reports whether the job was canceled, and the runner goes on.
func (w *worker) canceled(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errCanceled) && !w.stopping.Load()
}

// jobEnds sets the status of a job that was canceled, or whose runner stops.
func (w *worker) jobEnds(ctx context.Context) {
	switch {
	case w.canceled(ctx):
		w.status = "cancelled"
	case w.status != "cancelled":
		w.status = "failure"
	}
}

func (w *worker) nameOf(e entry) (string, error) {
	if e.name != "" {
		return e.name, nil
	}
	name, err := w.stepName(e.step)
	return e.prefix + name, err
}

func (w *worker) stepName(s step.Step) (string, error) {
	switch {
	case len(s.Name) > 0:
		return s.Name.Render(w.contexts(nil))
	case s.Uses != "":
		return "Run " + s.Uses, nil
	}
	script, err := s.Run.Render(w.contexts(nil))
	first, _, _ := strings.Cut(strings.TrimSpace(script), "\n")
	return "Run " + first, err
}
