package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/retry"
)

// Stage is a running `controld dev` whose hosts and GitHub are processes of this machine.
type Stage struct {
	*local.System
	// Out gets what happens, for people.
	Out io.Writer

	dir string
}

// New makes the directory of a stage, on which nothing runs yet. It is to be closed.
func New(out io.Writer) (*Stage, error) {
	dir, err := os.MkdirTemp("", "remuda-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a state directory: %w", err)
	}
	return &Stage{Out: out, dir: dir}, nil
}

// Start starts the programs that are in bin, by the text of a configuration. GitHub is as slow as the times say.
func (s *Stage) Start(ctx context.Context, bin, configuration string, github local.Times) error {
	config := filepath.Join(s.dir, "controld.yaml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	log, err := os.Create(s.logPath())
	if err != nil {
		return fmt.Errorf("write controld's log: %w", err)
	}
	defer log.Close() // controld has its own copy of the descriptor
	s.Say("Starting controld, its hosts and the GitHub stand-in on this machine ...")
	s.System, err = local.Start(ctx, local.Options{Bin: bin, StateDir: s.state(), Config: config, GitHub: github, Stderr: log})
	return err
}

func (s *Stage) state() string   { return filepath.Join(s.dir, "state") }
func (s *Stage) logPath() string { return filepath.Join(s.dir, "controld.log") }

// HostDir is the directory of the agent of a host, with its caches.
func (s *Stage) HostDir(id string) string { return filepath.Join(s.state(), "hosts", id, "host") }

// Stop ends the system. It is an error if a process of it is left, the stand-in included.
func (s *Stage) Stop() error {
	if s.System == nil {
		return nil
	}
	if err := s.System.Stop(); err != nil {
		return err
	}
	processes, err := local.Processes(s.state())
	if err == nil && len(processes) > 0 {
		err = fmt.Errorf("left over after the end: %v", processes)
	}
	return err
}

// Close deletes the directory of a stage that is stopped, or says where it is if the demo has failed with err or it is to be kept.
// It returns err, or why the directory could not be deleted.
func (s *Stage) Close(err error, keep bool) error {
	if err != nil || keep {
		s.Say("\nThe state directory is kept: %s (controld's log: %s)", s.dir, s.logPath())
		return err
	}
	return os.RemoveAll(s.dir)
}

// NothingLeft waits until no process of a host runs and GitHub has no registration: machines follow their records.
func (s *Stage) NothingLeft(ctx context.Context) error {
	for {
		runners, err := s.GitHub.Runners(ctx)
		processes, processesErr := local.Processes(filepath.Join(s.state(), "hosts"))
		if err := errors.Join(err, processesErr); err != nil {
			return err
		}
		if len(runners) == 0 && len(processes) == 0 {
			return nil
		}
		if err := retry.Sleep(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%w; left over: %d registrations, processes %v", err, len(runners), processes)
		}
	}
}
