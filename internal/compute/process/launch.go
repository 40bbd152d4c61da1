package process

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/safefile"
)

//go:embed init.sh
var initScript []byte

// bootsAtOnce is how many hosts of an order are started side by side: enough to
// hide the wait for each init, few enough not to crowd out running jobs.
const bootsAtOnce = 16

// Launch starts the machines of an order. The same order, made again after a crash or at
// the same time, gets the same machines in their present state; one that has ended stays
// gone. An order is remembered for 24 h after its last machine ended.
func (c *Compute) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	plan, err := c.settle(ctx, order)
	if err != nil {
		return nil, err
	}
	launched := slices.Clone(plan.Machines)
	if err := c.bootAll(ctx, launched); err != nil {
		return nil, unavailable("launch order "+order.Token, err)
	}
	return launched, plan.Shortage()
}

// bootAll makes sure that machines which are not gone were started, and brings their states up to date.
func (c *Compute) bootAll(ctx context.Context, machines []lifecycle.Machine) error {
	boots, bootCtx := errgroup.WithContext(ctx)
	boots.SetLimit(bootsAtOnce)
	for _, m := range machines {
		boots.Go(func() error { return c.boot(bootCtx, c.host(m.InstanceID)) })
	}
	if err := boots.Wait(); err != nil {
		return err
	}
	for i, m := range machines {
		machines[i].State = c.state(c.host(m.InstanceID))
	}
	return nil
}

// settle records what the order becomes, unless another replica has, and makes the directories of its hosts.
// It is the only part that needs the root's lock: two orders must not get the same capacity.
func (c *Compute) settle(ctx context.Context, order lifecycle.LaunchOrder) (placement.Plan, error) {
	if err := ctx.Err(); err != nil {
		return placement.Plan{}, fmt.Errorf("launch order %s: %w", order.Token, err)
	}
	lock, err := lockFile(ctx, filepath.Join(c.opts.Root, "lock"))
	if err != nil {
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	defer lock.Close()
	plan, err := c.planned(ctx, order)
	if err != nil {
		return plan, err
	}
	for _, m := range plan.Machines {
		if h := c.host(m.InstanceID); !h.exists() {
			if err := c.makeHost(h, m); err != nil {
				return plan, unavailable("launch order "+order.Token, err)
			}
		}
	}
	return plan, nil
}

// planned is the plan of the order: the stored one, or a new one, stored.
func (c *Compute) planned(ctx context.Context, order lifecycle.LaunchOrder) (placement.Plan, error) {
	path, now := c.orderPath(order.Token), c.opts.Now()
	stored, err := readOrder(path)
	switch {
	case err == nil:
		return stored.plan(), stored.plan().Repeats(order)
	case !errors.Is(err, fs.ErrNotExist):
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	if err := c.prune(now); err != nil {
		c.log.Warn("ended hosts were not forgotten", logkey.Error, err)
	}
	ids, err := c.ids()
	if err != nil {
		return placement.Plan{}, unavailable("launch order "+order.Token, err)
	}
	live := slices.DeleteFunc(c.look(ctx, ids), isGone)
	plan, err := c.opts.Place(order, live, c.opts.Root, now)
	if err != nil {
		return plan, err
	}
	if err := writeOrder(path, plan, now); err != nil {
		return plan, unavailable("launch order "+order.Token, err)
	}
	return plan, nil
}

// makeHost makes a host's directory, whole or not at all.
func (c *Compute) makeHost(h host, m lifecycle.Machine) error {
	config, err := c.opts.AgentConfig(m, h.dir)
	if err != nil {
		return fmt.Errorf("configure host %s: %w", h.id, err)
	}
	tags, err := json.MarshalIndent(machineJSON(m), "", "  ")
	if err != nil {
		return fmt.Errorf("make host %s: %w", h.id, err)
	}
	// The root's lock is held, so what has this name was left by a crash.
	draft := host{id: h.id, dir: filepath.Join(c.opts.Root, "draft")}
	err = c.fill(draft, map[string][]byte{"machine.json": tags, "agentd.yaml": config, "init": initScript, "agentd.log": nil})
	if err == nil {
		err = os.Rename(draft.dir, h.dir)
	}
	if err != nil {
		return fmt.Errorf("make host %s: %w", h.id, errors.Join(err, os.RemoveAll(draft.dir)))
	}
	return nil
}

func (c *Compute) fill(draft host, files map[string][]byte) error {
	if err := os.RemoveAll(draft.dir); err != nil {
		return err
	}
	if err := os.Mkdir(draft.dir, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(draft.path(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// logBytes is the size from which agentd.log is put aside when agentd starts.
// With the one before it, a host's log takes little more than twice of it.
const logBytes = 8 << 20

// boot makes sure that the host's init was started, once and by one replica only, and returns when init has
// recorded its pid. A host that has begun to end, or whose init is dead, is left alone.
//
// The lock is passed on to init, which releases it only once its pid is written: if the
// lock is free and there is no pid, no init lives.
func (c *Compute) boot(ctx context.Context, h host) error {
	for !h.started() {
		lock, free, err := safefile.TryLock(h.path("lock"))
		if err != nil {
			return fmt.Errorf("boot host %s: %w", h.id, err)
		}
		if free && !h.started() {
			err = c.startInit(ctx, h, lock)
		}
		if free {
			lock.Close()
		}
		if err == nil && !h.started() {
			err = retry.Sleep(ctx, lockLook)
		}
		if err != nil {
			return fmt.Errorf("boot host %s: %w", h.id, err)
		}
	}
	return nil
}

// startInit starts init and waits until its pid is written. It reaps init when that ends.
// If this process has died by then, its own reaper does.
func (c *Compute) startInit(ctx context.Context, h host, lock *os.File) error {
	log, err := os.OpenFile(h.path("agentd.log"), os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", h.path("init"), h.dir, c.opts.AgentPath, c.bootID,
		seconds(c.opts.BootDelay), seconds(c.opts.RestartDelay), strconv.Itoa(logBytes))
	cmd.Dir = h.dir
	cmd.Env = append(slices.Clone(c.opts.Env), InstanceIDVariable+"="+h.id)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock} // becomes file descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start init: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for !h.started() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if !h.started() {
				return fmt.Errorf("init ended before it began (%v): see %s", err, h.path("agentd.log"))
			}
		}
	}
	return nil
}

// seconds is a duration as the sleep of GNU, busybox and the BSDs takes it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

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
	Hibernates bool                   `json:"-"`
	Foreign    bool                   `json:"-"`
	EndReason  string                 `json:"-"`
	lifecycle.Hardware
	LaunchedAt      time.Time `json:"launchedAt"`
	EndedAt         time.Time `json:"-"`
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
