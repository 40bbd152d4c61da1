// Package step is the part of a workflow that travels to the runner, apart from the parser so that the runner stays small.
package step

import "github.com/remuda-ci/remuda/internal/githubsim/expr"

// Step is one step of a job: a script, an action, or what the job's container becomes. Its templates are rendered by
// the worker, since env changes while a job runs.
type Step struct {
	ID               string        `json:"id,omitempty"`
	Name             expr.Template `json:"name,omitempty"` // empty: "Run " and the first line of the script
	Run              expr.Template `json:"run"`
	Shell            string        `json:"shell,omitempty"` // "", "bash" or "sh"
	WorkingDirectory expr.Template `json:"working_directory,omitempty"`
	Env              []Variable    `json:"env,omitempty"`
	If               *expr.Node    `json:"if,omitempty"` // nil: success()

	// Uses is the action that the step calls: PrePost, Remuda or empty. Pre and Post are the scripts of PrePost; those that are empty
	// are no steps. With are the inputs of Remuda.
	Uses string        `json:"uses,omitempty"`
	With []Variable    `json:"with,omitempty"`
	Pre  expr.Template `json:"pre,omitempty"`
	Post expr.Template `json:"post,omitempty"`

	// Container is the image of the job's container. Such a step has no script, and is the first of its job.
	Container expr.Template `json:"container,omitempty"`
}

// PrePost is the stand-in's own action. Its inputs pre, main and post are scripts, which it runs where an action runs its own
// (https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax, "runs.pre").
const PrePost = "standin/pre-post@v1"

// Remuda is the one action with files: JavaScript, in a directory of the machine that runs it.
const Remuda = "remuda-ci/remuda/action@v1"

// Variable is one variable of a step's env.
type Variable struct {
	Name  string        `json:"name"`
	Value expr.Template `json:"value"`
}
