package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// Programs are the paths of the programs that dev runs.
type Programs struct{ Controld, Agentd, Runner string }

// FindPrograms finds them beside controld, where make build puts them.
func FindPrograms() (Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return Programs{}, fmt.Errorf("find controld itself: %w", err)
	}
	bin := filepath.Dir(self)
	p := Programs{Controld: self, Agentd: filepath.Join(bin, "agentd"), Runner: filepath.Join(bin, "standin-runner")}
	for _, path := range []string{p.Agentd, p.Runner} {
		if _, err := os.Stat(path); err != nil {
			return Programs{}, fmt.Errorf("find the program beside controld: %w; run make build", err)
		}
	}
	return p, nil
}

// LayOutRunner makes the distribution that hosts copy their runner from. It does so once for
// each build, since hosts of an earlier dev may be copying theirs.
func LayOutRunner(dir, program string) error {
	laid, laidErr := os.Stat(filepath.Join(dir, "bin", "Runner.Worker")) // the last thing that is laid
	built, err := os.Stat(program)
	if err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	if laidErr == nil && os.SameFile(laid, built) {
		return nil
	}
	if laidErr != nil && !errors.Is(laidErr, os.ErrNotExist) {
		return fmt.Errorf("lay out runner: %w", laidErr)
	}
	return standinrunner.LayOut(dir, program)
}
