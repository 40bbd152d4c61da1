package cli

import (
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/plan"
)

// Plan says what a scale-down would do with the fleet of a snapshot. It makes no call.
func (a *App) Plan(path string) error {
	if path == "" {
		return failure.Misused("--snapshot is required: `controld snapshot` writes it")
	}
	verdicts, err := plan.Read(path, a.Stdin)
	if err != nil {
		return failure.Of("", err)
	}
	switch a.Output {
	case output.JSON:
		err = plan.JSON(a.Stdout, verdicts)
	case output.YAML:
		err = output.Value(a.Stdout, a.Output, plan.Decisions(verdicts))
	default:
		err = plan.Table(a.Stdout, verdicts)
	}
	return failure.Of("write plan", err)
}
