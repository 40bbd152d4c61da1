// Package workflow reads workflow files as GitHub does, as far as the stand-in goes: jobs with needs, runs-on, strategy.matrix,
// environment, concurrency, container.image, env, steps[].run and steps[].if, the actions step.PrePost and step.Remuda, if: always() of jobs, and the expressions github.*,
// matrix.* and env.*. Anything else is refused by name, with its place.
package workflow

import (
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// Workflow is one parsed file.
type Workflow struct {
	Name    string        // its name key; empty if it has none
	RunName expr.Template // its run-name key; empty if it has none
	Jobs    []Job         // in the order of the file
	env     []step.Variable
}

// Job is one job of a file, before its matrix is expanded.
type Job struct {
	ID          string
	Needs       []string // job ids, as the file writes them
	FailFast    bool     // a failing job of the matrix cancels its siblings; GitHub's default is true
	IDToken     bool     // its permissions have id-token: write
	Always      bool     // if: always(), so it runs whatever became of what it needs, and of the run
	MaxParallel int      // how many jobs of the matrix may run at once; 0 is no bound

	name        expr.Template
	environment expr.Template
	group       expr.Template // of concurrency
	runsOn      []expr.Template
	env         []step.Variable
	matrix      *matrix
	steps       []step.Step
}

// Invalid is the error of a file that cannot run: all that is wrong with it at once.
type Invalid struct {
	Problems []string // each with line and column
}

// Error lists every problem.
func (e *Invalid) Error() string { return "invalid workflow file: " + strings.Join(e.Problems, "; ") }
