package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// orderJSON is the file of an order: what it became, and when.
type orderJSON struct {
	Order     lifecycle.LaunchOrder `json:"order"`
	Machines  []machineJSON         `json:"machines"`
	Why       string                `json:"why,omitempty"`
	PlannedAt time.Time             `json:"plannedAt"`
}

// machineJSON is lifecycle.Machine with the names it has in files. The state is not stored: it is what the
// processes say. Nor is Bypass, which has a file of its own.
type machineJSON struct {
	InstanceID string                 `json:"instanceId"`
	HostKey    string                 `json:"hostKey"`
	State      lifecycle.MachineState `json:"-"`
	Impaired   bool                   `json:"-"`
	lifecycle.Hardware
	LaunchedAt      time.Time `json:"launchedAt"`
	Pool            string    `json:"pool"`
	Repository      string    `json:"repository"`
	RunID           string    `json:"runId"`
	RequestID       string    `json:"requestId"`
	Launch          int       `json:"launch"`
	TemplateVersion string    `json:"templateVersion,omitempty"`
	Bypass          bool      `json:"-"`
}

// orderPath names the file of an order by its token, which may hold anything.
func (c *Compute) orderPath(token string) string {
	sum := sha256.Sum256([]byte(token))
	return filepath.Join(c.ordersDir(), hex.EncodeToString(sum[:16])+".json")
}

func readOrder(path string) (orderJSON, error) {
	var o orderJSON
	data, err := safefile.Read(path)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("order file %s is damaged (without it the order is planned again): %w", path, err)
	}
	return o, nil
}

func writeOrder(path string, plan placement.Plan, now time.Time) error {
	o := orderJSON{Order: plan.Order, Why: plan.Why, PlannedAt: now}
	for _, m := range plan.Machines {
		o.Machines = append(o.Machines, machineJSON(m))
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return safefile.Replace(path, data, 0o600, false)
}

func (o orderJSON) plan() placement.Plan {
	plan := placement.Plan{Order: o.Order, Why: o.Why}
	for _, m := range o.Machines {
		plan.Machines = append(plan.Machines, lifecycle.Machine(m))
	}
	return plan
}
