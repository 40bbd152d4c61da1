package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/config"
	queue "github.com/remuda-ci/remuda/internal/queue/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// newLocalBackends makes the backends of a fleet on this machine: records and queue in one
// file, and hosts as processes. With readOnly they change nothing.
func newLocalBackends(c *config.Config, log hclog.Logger, readOnly bool) (*backends, error) {
	if err := checkRunner(c.Compute.Process.Runner); err != nil {
		return nil, err
	}
	options := processOptions(c, log)
	options.ReadOnly = readOnly
	compute, err := process.New(options)
	if err != nil {
		return nil, err
	}
	file, err := db.Open(c.Store.SQLite.Path, db.Options{Logger: log.Named("store"), ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	return &backends{
		store: sqlite.New(file).Store, queue: queue.New(file, queue.Options{}), compute: compute,
		sells: sells(c), endHosts: compute.EndAll, close: file.Close,
	}, nil
}

// checkRunner checks that the runner's directory has the first file that hosts copy: without
// it they would all fail.
func checkRunner(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config.sh")); err != nil {
		return &configError{fmt.Errorf("compute.process.runner: %s holds no unpacked actions/runner: %w", dir, err)}
	}
	return nil
}
