//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// onSQLite is a fleet of so many replicas on one file of the small disk. Its machines are processes that only wait, each under the init of a host. They
// end with this process, however that ends.
func (s *stage) onSQLite(replicas int) {
	s.Helper()
	path := s.disk.path("remuda.db")
	file, err := db.Open(path, db.Options{Light: true})
	check(s.TB, err)
	s.Cleanup(func() { _ = file.Close() }) // the test has said what it found
	rows := sqlite.New(file)
	s.store, s.oneClock = rows.Store, true
	s.report = func(ctx context.Context, p lifecycle.Report) error { return rows.ForHost(p.HostKey).PutReport(ctx, p) }
	compute := filepath.Join(s.state, "compute")
	s.machines = func(context.Context) (map[string]bool, error) { return processesOf(filepath.Join(compute, "hosts")) }
	agent, distribution := filepath.Join(s.state, "agentd"), filepath.Join(s.state, "runner")
	waits := fmt.Sprintf("#!/bin/sh\nexec tail --pid=%d --sleep-interval=5 --follow /dev/null\n", os.Getpid())
	check(s.TB, os.WriteFile(agent, []byte(waits), 0o700))
	check(s.TB, runner.LayOut(distribution, filepath.Join(bin(s.TB), "standin-runner")))
	s.newReplicas(replicas, fmt.Sprintf("store: {sqlite: {path: %s}}\ncompute: {process: {directory: %s, agentd: %s, runner: %s}}\n",
		path, compute, agent, distribution), nil)
}

// processesOf are the hosts below a directory whose init lives.
func processesOf(dir string) (map[string]bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	found := map[string]bool{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "init.pid"))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 2 {
			continue // it has not been started
		}
		stat, err := os.ReadFile(filepath.Join("/proc", fields[0], "stat"))
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ") // the state comes first, and the start time is the 20th
		if rest := strings.Fields(after); len(rest) > 19 && rest[0] != "Z" && rest[19] == fields[1] {
			found[e.Name()] = true
		}
	}
	return found, nil
}
