package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
)

// StateFile keeps the agent's memory in one file.
type StateFile struct {
	Path string
	// Now is the clock for the names of damaged files.
	Now func() time.Time
}

var _ agent.State = StateFile{}

// Load reads the file. A damaged one is moved aside, so that it can be examined and is not in the way.
func (f StateFile) Load() (agent.Memory, error) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Memory{}, nil
	}
	if err != nil {
		return agent.Memory{}, fmt.Errorf("load agent state: %w", err)
	}
	var m agent.Memory
	err = json.Unmarshal(data, &m)
	if err == nil {
		return m, nil
	}
	aside := f.Path + ".damaged-" + f.Now().UTC().Format("20060102T150405Z")
	if moveErr := os.Rename(f.Path, aside); moveErr != nil {
		return agent.Memory{}, fmt.Errorf("load agent state: %s is damaged: %w; it cannot be moved aside: %w", f.Path, err, moveErr)
	}
	return agent.Memory{}, fmt.Errorf("load agent state: %s was damaged and is now %s: %w", f.Path, aside, err)
}

// Save replaces the file.
func (f StateFile) Save(m agent.Memory) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = writeFile(f.Path, data)
	}
	if err != nil {
		return fmt.Errorf("save agent state: %w", err)
	}
	return nil
}

// ErrInUse is returned by Lock when another agent works on the host.
var ErrInUse = errors.New("another agentd works on this host")

// Lock keeps a second agent from using the host's directory, until the file is closed or this process ends.
func Lock(path string) (*os.File, error) {
	lock, free, err := lockWithin(path)
	if err == nil && !free {
		err = fmt.Errorf("%w (%s)", ErrInUse, path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock host: %w", err)
	}
	return lock, nil
}
