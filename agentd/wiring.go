package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// system is what the wiring needs of the machine that agentd runs on.
type system struct {
	// program is the path of agentd.
	program string
	// user is the account of jobs. Without a systemd section it is empty, and so is docker.
	user   account
	docker docker
}

// docker is what a host has of docker.
type docker struct {
	path  string // of the command; empty for none
	group bool   // the group dockerGroup exists
}

// system looks for what the configuration names on this machine.
func (c config) system() (system, error) {
	program, err := os.Executable()
	if err != nil {
		return system{}, fmt.Errorf("find path of agentd: %w", err)
	}
	if c.Systemd == nil {
		return system{program: program}, nil
	}
	who, err := findAccount(c.Systemd.User)
	if err != nil {
		return system{}, err
	}
	return system{program: program, user: who, docker: findDocker()}, nil
}

func findDocker() docker {
	var d docker
	if path, err := exec.LookPath("docker"); err == nil {
		d.path = path
	}
	_, err := user.LookupGroup(dockerGroup)
	d.group = err == nil
	return d
}

// host opens this machine as the configuration describes it. Its id may still be unknown.
// assignment is that of a clean-up; 0 otherwise.
func (c config) host(assignment int64) (*host.Host, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	return host.New(c.hostOptions(s, assignment))
}

// standbyWait is how long a job waits on a host in standby; 0 for the default. Only tests set it.
var standbyWait time.Duration

func (c config) hostOptions(s system, assignment int64) host.Options {
	log := c.logger(c.InstanceID)
	return host.Options{
		InstanceID: c.InstanceID, Dir: c.Directory, Program: s.program, Distribution: c.Runner.Distribution,
		PreRunner: c.PreRunner.Script, PreRunnerLimit: c.PreRunner.Timeout, Env: c.Runner.Env, Config: c.Path,
		Caches:      c.caches(),
		ArchivesURL: c.ArchivesURL, MinimumFree: c.minimumFree(), MinimumFreeFiles: leastInodes, JobSummary: c.Runner.JobSummary, StandbyWait: standbyWait, Version: telemetry.Version,
		Systemd: c.systemd(s, assignment, log.Named("reset")), Logger: log.Named("host"),
	}
}

func (c config) agentOptions(p place, h agent.Host, log hclog.Logger) agent.Options {
	return agent.Options{
		HostKey: p.hostKey, Store: p.store, Host: h, Version: telemetry.Version,
		State:       host.StateFile{Path: c.state("agent.json"), Now: time.Now},
		Intervals:   agent.Intervals(c.Intervals),
		BootTimeout: c.BootTimeout, Logger: log,
	}
}

// minimumFree is in bytes.
func (c config) minimumFree() uint64 { return uint64(c.Runner.MinimumFreeMiB) << 20 }

// state is the path of a file that outlives agentd.
func (c config) state(name string) string { return filepath.Join(c.Directory, "state", name) }
