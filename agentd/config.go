package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/archive"
	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// config is agentd's configuration file.
type config struct {
	// InstanceID is the id of this host. With DynamoDB it may be left out: then this
	// is an EC2 instance, and its metadata has the id.
	InstanceID string `yaml:"instance_id"`
	// HostKey is the key of its two rows; by default the instance id. An EC2 instance asks STS for it.
	HostKey string `yaml:"host_key"`
	// HostFile is the file in which user data writes region, prefix and pool.
	HostFile string `yaml:"host_file"`
	// Directory is where the host keeps everything, as an absolute path.
	Directory string       `yaml:"directory"`
	Store     storeConfig  `yaml:"store"`
	Runner    runnerConfig `yaml:"runner"`
	// Systemd makes the tasks of the host units of systemd, as on an image. Without
	// it they are processes of agentd's own user.
	Systemd *systemdConfig `yaml:"systemd"`
	// PreRunner runs once per boot before the first registration, PostRelease in each
	// clean-up. With systemd both run as root.
	PreRunner   hookConfig `yaml:"pre_runner"`
	PostRelease hookConfig `yaml:"post_release"`
	// Caches are the directories of jobs that outlive a run; by default those of HostFile.
	Caches []cacheConfig `yaml:"caches"`
	// ArchivesURL is of the server that has the archives of public actions at /OWNER/REPOSITORY/tar.gz/SHA;
	// empty: none are fetched.
	ArchivesURL string `yaml:"archives_url"`
	// BootTimeout is how long the host waits for its record.
	BootTimeout time.Duration `yaml:"boot_timeout"`
	Intervals   intervals     `yaml:"intervals"`
	// PowerOff is the command that powers off an EC2 instance that EC2 does not terminate.
	PowerOff []string `yaml:"power_off"`
	// LogLevel is one of trace, debug, info, warn and error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`

	// Host is the content of HostFile.
	Host hostFile
	// Path is the file that the configuration was read from.
	Path string
}

// storeConfig configures one of the two stores.
type storeConfig struct {
	SQLite   *sqliteConfig   `yaml:"sqlite"`
	DynamoDB *dynamodbConfig `yaml:"dynamodb"`
}

type sqliteConfig struct {
	// Path is the database file that controld uses.
	Path string `yaml:"path"`
}

type dynamodbConfig struct {
	// Prefix is the prefix of the table names; empty for that of HostFile.
	Prefix string `yaml:"prefix"`
	// Region is that of the tables; empty for that of HostFile, or of this machine.
	Region string `yaml:"region"`
}

type runnerConfig struct {
	// Distribution is the directory of an unpacked runner.
	Distribution string `yaml:"distribution"`
	// Env is added to the runner's environment.
	Env map[string]string `yaml:"env"`
	// MinimumFreeMiB is the disk space that a host must have to be clean.
	MinimumFreeMiB int64 `yaml:"minimum_free_mib"`
	// JobSummary has each job's summary say how its host came to the run, as its log does.
	JobSummary bool `yaml:"job_summary"`
}

// hookConfig configures a script of the operator.
type hookConfig struct {
	// Script is its absolute path; empty for none.
	Script string `yaml:"script"`
	// Timeout is how long it may take. After that it is killed and counts as failed.
	Timeout time.Duration `yaml:"timeout"`
}

type intervals struct {
	ReadIdle    time.Duration `yaml:"read_idle"`
	ReadStandby time.Duration `yaml:"read_standby"`
	ReadRunning time.Duration `yaml:"read_running"`
	Heartbeat   time.Duration `yaml:"heartbeat"`
}

// defaultMinimumFreeMiB is the least in which a checkout and a build usually fit.
const defaultMinimumFreeMiB = 1024

// defaultPostRelease is long for a script that cleans up, and leaves the rest of the
// release timeout of 120 s for the clean-up.
const defaultPostRelease = 30 * time.Second

// Bounds of the configuration. A host counts as silent after 60 s, so a slower heartbeat
// would end it. Reads cost money every hour.
const (
	shortestInterval = 10 * time.Millisecond
	longestRead      = 30 * time.Second
	longestHeartbeat = 25 * time.Second
	longestPreRunner = 30 * time.Minute
	// longestPostRelease is below the 120 s after which a release ends the host.
	longestPostRelease = 90 * time.Second
)

func defaultConfig() config {
	d := agent.DefaultIntervals()
	return config{
		Runner:      runnerConfig{MinimumFreeMiB: defaultMinimumFreeMiB},
		PreRunner:   hookConfig{Timeout: host.DefaultPreRunnerLimit},
		PostRelease: hookConfig{Timeout: defaultPostRelease},
		ArchivesURL: archive.DefaultURL,
		BootTimeout: agent.DefaultBootTimeout,
		Intervals:   intervals{ReadIdle: d.ReadIdle, ReadStandby: d.ReadStandby, ReadRunning: d.ReadRunning, Heartbeat: d.Heartbeat},
		LogLevel:    "info",
		LogFormat:   telemetry.LogText,
	}
}

// hostFileWait is how long a host file may be missing. The unit starts after cloud-init, which writes it, by the names that cloud-init's
// units have today: with others a host that never waited would power off, and the next one too.
const hostFileWait = 10 * time.Second

// awaitConfig is readConfig, and waits for the host file.
func awaitConfig(ctx context.Context, path string) (config, error) {
	for end := time.Now().Add(hostFileWait); ; {
		c, err := readConfig(path)
		var missing *noHostFileError
		if !errors.As(err, &missing) || !time.Now().Before(end) || retry.Sleep(ctx, 200*time.Millisecond) != nil {
			return c, err
		}
	}
}

// noHostFileError says that user data has not written the host file.
type noHostFileError struct{ err error }

func (e *noHostFileError) Error() string {
	return "read host_file, which user data writes at boot: " + e.err.Error()
}

func (e *noHostFileError) Unwrap() error { return e.err }

func readConfig(path string) (config, error) {
	c := defaultConfig()
	c.Path = path
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	if err := strictyaml.Decode(path, data, &c); err != nil {
		return c, err
	}
	if err := c.readHostFile(); err != nil {
		return c, err
	}
	c.HostKey = cmp.Or(c.HostKey, c.InstanceID)
	return c, nil
}

// Validate reports every rule that the configuration breaks.
func (c *config) Validate(root strictyaml.Place) {
	c.validateStore(root)
	root.At("directory").Path(c.Directory)
	root.At("runner", "distribution").Path(c.Runner.Distribution)
	root.At("pre_runner", "script").OptionalPath(c.PreRunner.Script)
	c.validateSystemd(root)
	validateCaches(root.At("caches"), c.Caches)
	root.At("archives_url").Match(c.ArchivesURL, archivesURL, "https://HOST or http://HOST, with a port and a path if needed, without a final slash")
	if c.Runner.MinimumFreeMiB < 0 {
		root.At("runner", "minimum_free_mib").Errorf("is %d; write 0 or more", c.Runner.MinimumFreeMiB)
	}
	for name := range c.Runner.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			root.At("runner", "env").Errorf("%q is no name of an environment variable", name)
		}
	}
	if hclog.LevelFromString(c.LogLevel) == hclog.NoLevel {
		root.At("log_level").Errorf("is %q; write trace, debug, info, warn or error", c.LogLevel)
	}
	if c.LogFormat != telemetry.LogText && c.LogFormat != telemetry.LogJSON {
		root.At("log_format").Errorf("is %q; write %s or %s", c.LogFormat, telemetry.LogText, telemetry.LogJSON)
	}
	root.At("pre_runner", "timeout").Between(c.PreRunner.Timeout, time.Second, longestPreRunner)
	root.At("post_release", "timeout").Between(c.PostRelease.Timeout, time.Second, longestPostRelease)
	root.At("boot_timeout").Between(c.BootTimeout, time.Second, 24*time.Hour)
	root.At("intervals", "read_idle").Between(c.Intervals.ReadIdle, shortestInterval, longestRead)
	root.At("intervals", "read_standby").Between(c.Intervals.ReadStandby, shortestInterval, longestRead)
	root.At("intervals", "read_running").Between(c.Intervals.ReadRunning, shortestInterval, longestRead)
	root.At("intervals", "heartbeat").Between(c.Intervals.Heartbeat, shortestInterval, longestHeartbeat)
}

func (c *config) validateStore(root strictyaml.Place) {
	s, at := c.Store, root.At("store")
	switch {
	case s.SQLite == nil && s.DynamoDB == nil:
		at.Errorf("is missing; write sqlite or dynamodb")
	case s.SQLite != nil && s.DynamoDB != nil:
		at.Errorf("has sqlite and dynamodb; remove one of them")
	}
	if s.SQLite != nil {
		at.At("sqlite", "path").Path(s.SQLite.Path)
		c.validateLocal(root)
	}
	if s.DynamoDB != nil {
		at.At("dynamodb", "prefix").Match(s.DynamoDB.Prefix, prefixName, "1 to 20 of a-z 0-9 and -, a letter first")
		at.At("dynamodb", "region").Match(s.DynamoDB.Region, regionName, "a region such as eu-west-1")
	}
	if c.InstanceID == "" && c.HostKey != "" {
		root.At("host_key").Errorf("is there without instance_id; an EC2 instance asks for its key, so remove it")
	}
	root.At("host_file").OptionalPath(c.HostFile)
	for i, arg := range c.PowerOff {
		if arg == "" {
			root.At("power_off").Item(i).Errorf("is empty; write a program and its arguments")
		}
	}
}

// validateLocal checks the settings of a host without AWS, where no service knows them.
func (c *config) validateLocal(root strictyaml.Place) {
	if c.InstanceID == "" {
		root.At("instance_id").Errorf("is missing; write the id of this host")
	}
	if c.HostFile != "" {
		root.At("host_file").Errorf("is for store.dynamodb; remove it")
	}
	if len(c.PowerOff) > 0 {
		root.At("power_off").Errorf("is for EC2 instances; remove it")
	}
}

// archivesURL is followed by the path of an archive.
var archivesURL = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~-]+)*$`)

// The names that controld's configuration allows.
var (
	prefixName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)
	regionName = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`)
)
