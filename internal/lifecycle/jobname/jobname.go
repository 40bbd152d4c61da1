// Package jobname writes a job for people.
package jobname

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Of is a job's id and, where it is known, its name, in quotes since the author of the workflow chose it.
func Of(j lifecycle.Job) string {
	if j.Name == "" {
		return fmt.Sprint(j.ID)
	}
	return fmt.Sprintf("%d %q", j.ID, j.Name)
}
