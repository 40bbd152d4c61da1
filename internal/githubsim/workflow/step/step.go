// Package step is the part of a workflow that travels to the runner, apart from the parser so that the runner stays small.
package step

import "github.com/remuda-ci/remuda/internal/githubsim/expr"

// Step is one run step. Its templates are rendered by the worker, since env changes while a job runs.
type Step struct {
	ID               string        `json:"id,omitempty"`
	Name             expr.Template `json:"name,omitempty"` // empty: "Run " and the first line of the script
	Run              expr.Template `json:"run"`
	Shell            string        `json:"shell,omitempty"` // "", "bash" or "sh"
	WorkingDirectory expr.Template `json:"working_directory,omitempty"`
	Env              []Variable    `json:"env,omitempty"`
}

// Variable is one variable of a step's env.
type Variable struct {
	Name  string        `json:"name"`
	Value expr.Template `json:"value"`
}
