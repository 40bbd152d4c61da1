package reset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// baseline is what a host has before its first run. A verification without findings replaces Processes by those that it has
// accounted for. The next one knows those that are still there.
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
func Record(ctx context.Context, p Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := p.recordImages(ctx); err != nil { // first, since it may start docker, which then belongs to the baseline
		return fmt.Errorf("record baseline: %w", err)
	}
	base, err := p.observe()
	if err != nil {
		return fmt.Errorf("record baseline: %w", err)
	}
	base.RecordedAt = time.Now().UTC()
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
func (p Plan) observe() (baseline, error) {
	var b baseline
	var errs [9]error
	b.BootID, errs[0] = p.proc().BootID()
	b.Mounts, errs[1] = p.mounts()
	b.Listeners, errs[2] = p.listeners()
	b.Transients, errs[3] = p.transients()
	b.Processes, errs[4] = p.processIDs()
	b.Startup, errs[5] = p.startupFingerprints()
	b.Generated, errs[6] = p.generatedFingerprints()
	b.Own, errs[7] = p.ownFingerprints()
	b.Sockets, errs[8] = p.sockets()
	return b, errors.Join(errs[:]...)
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
	id, err := p.proc().BootID()
	if err != nil {
		return b, err
	}
	if id != b.BootID {
		return b, fmt.Errorf("read baseline %s: it was recorded in another boot: prepare the host again", p.Baseline)
	}
	return b, nil
}
