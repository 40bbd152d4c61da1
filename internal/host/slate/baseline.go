package slate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// baseline is what a host has before its first run, and who has come since that was no doubt.
type baseline struct {
	// BootID is of /proc/sys/kernel/random/boot_id: what is mounted and listens is of one boot.
	BootID     string     `json:"bootId"`
	RecordedAt time.Time  `json:"recordedAt"`
	Mounts     []mount    `json:"mounts"`
	Listeners  []listener `json:"listeners"`
	Transients []string   `json:"transients"`
	Processes  []birth    `json:"processes"`
	Starting   prints     `json:"starting"`
	Generated  prints     `json:"generated"`
	Own        prints     `json:"own"`
	Sockets    prints     `json:"sockets"`
}

// Record writes the baseline. It is called once in each boot, before the first run and after all that belongs to the host
// has been started, mounted and mirrored.
func Record(_ context.Context, p Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	base, err := p.look()
	if err != nil {
		return fmt.Errorf("record baseline: %w", err)
	}
	base.RecordedAt = time.Now().UTC()
	return p.write(base)
}

// remember writes down which processes a check without doubts knew: those that are still there are known to the next one.
func (p Plan) remember(base baseline, known []birth) error {
	base.Processes = known
	return p.write(base)
}

func (p Plan) write(base baseline) error {
	data, err := json.Marshal(base)
	if err == nil {
		err = replaceFile(p.Baseline, data)
	}
	if err != nil {
		return fmt.Errorf("record baseline: %w", err)
	}
	return nil
}

// look is how the host is now, in all that a baseline has.
func (p Plan) look() (b baseline, err error) {
	b.BootID, err = p.bootID()
	steps := []func() error{
		func() (err error) { b.Mounts, err = p.mounts(); return err },
		func() (err error) { b.Listeners, err = p.listeners(); return err },
		func() (err error) { b.Transients, err = p.transients(); return err },
		func() (err error) { b.Processes, err = p.births(); return err },
		func() (err error) { b.Starting, err = p.starters(); return err },
		func() (err error) { b.Generated, err = p.generated(); return err },
		func() (err error) { b.Own, err = p.ownPrints(); return err },
		func() (err error) { b.Sockets, err = p.sockets(); return err },
	}
	for _, step := range steps {
		err = errors.Join(err, step())
	}
	return b, err
}

func (p Plan) bootID() (string, error) {
	id, err := os.ReadFile(p.at("/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// baseline reads what Record has written.
func (p Plan) baseline() (baseline, error) {
	var b baseline
	data, err := os.ReadFile(p.Baseline)
	if errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("read baseline: %w: it is recorded when the host is prepared, without it nothing can be said of the host", err)
	}
	if err != nil {
		return b, fmt.Errorf("read baseline: %w", err)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read baseline %s: %w", p.Baseline, err)
	}
	id, err := p.bootID()
	if err != nil {
		return b, err
	}
	if id != b.BootID {
		return b, fmt.Errorf("read baseline %s: it is of another boot: prepare the host again", p.Baseline)
	}
	return b, nil
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
