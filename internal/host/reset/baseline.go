package reset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// baseline is what a host has before its first run. Its processes are updated by each verification without findings: see
// recordKnown.
type baseline struct {
	// BootID is that of /proc/sys/kernel/random/boot_id: mounts and listeners belong to one boot.
	BootID     string          `json:"bootId"`
	RecordedAt time.Time       `json:"recordedAt"`
	Mounts     []mount         `json:"mounts"`
	Listeners  []listener      `json:"listeners"`
	Transients []string        `json:"transients"`
	Processes  []procID        `json:"processes"`
	Startup    fingerprint.Set `json:"starting"`
	Generated  fingerprint.Set `json:"generated"`
	Own        fingerprint.Set `json:"own"`
	Sockets    fingerprint.Set `json:"sockets"`
}

// Record writes the baseline. It is called once in each boot, before the first run and after everything that belongs to
// the host has been started, mounted and mirrored.
func Record(_ context.Context, p Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	base, err := p.observe()
	if err != nil {
		return fmt.Errorf("record baseline: %w", err)
	}
	base.RecordedAt = time.Now().UTC()
	return p.write(base)
}

// recordKnown records the processes that a verification without findings has accounted for. The next one knows those
// that are still there.
func (p Plan) recordKnown(base baseline, known []procID) error {
	base.Processes = known
	return p.write(base)
}

func (p Plan) write(base baseline) error {
	data, err := json.Marshal(base)
	if err == nil {
		err = safefile.Replace(p.Baseline, data, 0o600, true)
	}
	if err != nil {
		return fmt.Errorf("record baseline: %w", err)
	}
	return nil
}

// observe returns the state of the host now, in everything that a baseline has.
func (p Plan) observe() (b baseline, err error) {
	b.BootID, err = p.bootID()
	steps := []func() error{
		func() (err error) { b.Mounts, err = p.mounts(); return err },
		func() (err error) { b.Listeners, err = p.listeners(); return err },
		func() (err error) { b.Transients, err = p.transients(); return err },
		func() (err error) { b.Processes, err = p.processIDs(); return err },
		func() (err error) { b.Startup, err = p.startupFingerprints(); return err },
		func() (err error) { b.Generated, err = p.generatedFingerprints(); return err },
		func() (err error) { b.Own, err = p.ownFingerprints(); return err },
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

// readBaseline reads what Record has written. A baseline of another boot is an error.
func (p Plan) readBaseline() (baseline, error) {
	var b baseline
	data, err := os.ReadFile(p.Baseline)
	if errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("read baseline: %w: it is recorded when the host is prepared, and without it the host cannot be verified", err)
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
		return b, fmt.Errorf("read baseline %s: it was recorded in another boot: prepare the host again", p.Baseline)
	}
	return b, nil
}
