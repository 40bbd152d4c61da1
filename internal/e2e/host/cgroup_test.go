//go:build testhost

package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hierarchies are where systemd keeps its control groups: version 2, and beside
// it, where version 1 is mounted too, systemd's own of that.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // device, place, type, options
		if len(f) > 3 && (f[2] == "cgroup2" || f[2] == "cgroup" && strings.Contains(f[3], "name=systemd")) {
			found = append(found, f[1])
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups of version 2 are mounted: these tests need them")
	}
	return found, nil
}

// groups are the control groups of a machine.
type groups []string

func newGroups(t testing.TB, name string) groups {
	t.Helper()
	g, err := makeGroups(name)
	check(t, err)
	t.Cleanup(func() {
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func makeGroups(name string) (groups, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var g groups
	for _, at := range all {
		g = append(g, filepath.Join(at, name))
		if err := os.Mkdir(g[len(g)-1], 0o755); err != nil {
			return g, err
		}
	}
	return g, nil
}

// remove kills the processes left in the groups and deletes the groups.
func (g groups) remove() error {
	for _, dir := range g {
		if err := killGroup(dir); err != nil {
			return err
		}
	}
	for _, dir := range g {
		end := time.Now().Add(10 * time.Second)
		for err := removeGroup(dir); err != nil; err = removeGroup(dir) {
			if time.Now().After(end) {
				return fmt.Errorf("remove control group: %w", err)
			}
			time.Sleep(lookEvery)
		}
	}
	return nil
}

// killGroup kills all processes of a group, where its hierarchy can do that.
func killGroup(dir string) error {
	kill, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) { // version 1, or gone
		return nil
	}
	if err != nil {
		return err
	}
	_, err = kill.WriteString("1")
	return errors.Join(err, kill.Close())
}

// removeGroup deletes a group and those below it. Their files go by themselves.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
