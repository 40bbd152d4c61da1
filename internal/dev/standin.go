package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/safefile"
)

const (
	// standinWithin bounds the start of a stand-in, with a journal to read.
	standinWithin = 10 * time.Second
	// standinAnswers bounds one call to it, on this machine.
	standinAnswers = time.Second
	// standinEnds is how long it may take to end by itself; then it is killed.
	standinEnds = time.Second
	// standinPause is the pause between two checks of it.
	standinPause = 10 * time.Millisecond
)

// The files by which a stand-in is found, in its state directory.
const (
	// standinLock is locked as long as the stand-in lives.
	standinLock = "standin.lock"
	// standinFile holds its StandinID, from when it listens.
	standinFile = "standin.json"
	// standinLog is its output, if dev started it.
	standinLog = "standin.log"
)

// StandinID is the content of standinFile.
type StandinID struct {
	PID  int    `json:"pid"`
	Addr string `json:"addr"`
}

// Standin is the process of a GitHub stand-in. It outlives a dev that is killed: runs and
// registrations go on, as on GitHub.
type Standin struct {
	StandinID
	dir string
	// exited is closed when our own child has ended; nil for a process that was there before.
	exited chan struct{}
}

// StandinTimes are how slow a stand-in is.
type StandinTimes struct {
	// API is the time of each call, Configure that of config.sh as a whole, and Listen what a listener takes before it opens its session.
	API, Configure, Listen time.Duration
	// Assign is how long a queued job may wait although a runner of its labels is idle. With any, jobs are given to runners in no order, as GitHub may.
	Assign time.Duration
}

// Define declares the flags. Each default is no time at all.
func (t *StandinTimes) Define(f *flag.FlagSet) {
	f.DurationVar(&t.API, "api-time", 0, "how long the GitHub stand-in takes for each call, a `TIME`")
	f.DurationVar(&t.Configure, "configure-time", 0, "how long the stand-in runner's config.sh takes, a `TIME`")
	f.DurationVar(&t.Listen, "listen-time", 0, "how long the stand-in runner's listener takes before it opens its session, a `TIME`")
	f.DurationVar(&t.Assign, "assign-time", 0, "within what `TIME` the stand-in gives a queued job to an idle runner; with any, in no order")
}

// args are the flags that Define reads.
func (t StandinTimes) args() []string {
	return []string{"--api-time", t.API.String(), "--configure-time", t.Configure.String(), "--listen-time", t.Listen.String(), "--assign-time", t.Assign.String()}
}

// StartStandin attaches to the stand-in of the directory, or to another one that answers at addr and that is
// left alone at the end, or starts one. It waits until the stand-in answers.
func StartStandin(ctx context.Context, program, addr, dir string, times StandinTimes) (*Standin, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, standinWithin, fmt.Errorf("the GitHub stand-in did not answer within %s", standinWithin))
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start the GitHub stand-in: %w", err)
	}
	s := &Standin{dir: dir}
	if !s.held() && Answers(ctx, addr) {
		s.Addr = addr
		return s, nil
	}
	for {
		if s.exited == nil && !s.held() {
			if err := s.start(program, addr, times); err != nil {
				return nil, fmt.Errorf("start the GitHub stand-in: %w", err)
			}
		}
		if s.Find() && Answers(ctx, s.Addr) {
			return s, nil
		}
		select {
		case <-s.exited:
			return nil, fmt.Errorf("the GitHub stand-in ended: %s", lastLine(filepath.Join(dir, standinLog)))
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), s.EndIfStarted())
		case <-time.After(standinPause):
		}
	}
}

// held reports whether a stand-in holds the lock of the directory. It must not be called
// while our own child starts, which could then find the lock taken.
func (s *Standin) held() bool {
	lock, free, err := safefile.TryLock(filepath.Join(s.dir, standinLock))
	if free {
		lock.Close()
	}
	return err == nil && !free
}

// start starts a stand-in in a session of its own, so that signals of dev's terminal do not reach it.
func (s *Standin) start(program, addr string, times StandinTimes) error {
	log, err := os.OpenFile(filepath.Join(s.dir, standinLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.Remove(filepath.Join(s.dir, standinFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := exec.Command(program, append([]string{"github-standin", "--addr", addr, "--state-dir", s.dir}, times.args()...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.PID, s.exited = cmd.Process.Pid, make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(s.exited)
	}()
	return nil
}

// Find reads the process id and address of the stand-in from the file that it wrote, and
// reports whether it lives.
func (s *Standin) Find() bool {
	data, err := os.ReadFile(filepath.Join(s.dir, standinFile))
	if err != nil {
		return false
	}
	var id StandinID
	if json.Unmarshal(data, &id) != nil || (s.exited != nil && id.PID != s.PID) {
		return false
	}
	found := Standin{StandinID: id, dir: s.dir}
	if !found.Alive() {
		return false
	}
	s.StandinID = id
	return true
}

// URL is the base of its API.
func (s *Standin) URL() string { return "http://" + s.Addr + "/api/v3" }

// Alive reports whether the process is there and is a stand-in of the directory: by now its
// pid may belong to another process.
func (s *Standin) Alive() bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "cmdline"))
	if err != nil {
		return false
	}
	args := strings.Split(string(data), "\x00")
	at := slices.Index(args, "--state-dir")
	if !slices.Contains(args, "github-standin") || at < 0 || at+1 >= len(args) {
		return false
	}
	theirs, err := os.Stat(args[at+1])
	if err != nil {
		return false
	}
	ours, err := os.Stat(s.dir)
	return err == nil && os.SameFile(ours, theirs)
}

// Answers reports whether a stand-in answers at an address within a second. The call costs
// nothing and is counted nowhere.
func Answers(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, standinAnswers)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/_standin/calls", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// EndIfStarted ends a stand-in that was started here. Another one is left to the hosts that may be using it.
func (s *Standin) EndIfStarted() error {
	if s.exited == nil {
		return nil
	}
	return s.End()
}

// End ends the stand-in: by SIGTERM, and by SIGKILL if it does not end in time.
func (s *Standin) End() error {
	if s.PID == 0 {
		return nil // it was never found, or is not of this directory
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := s.signal(signal); err != nil {
			return fmt.Errorf("end the GitHub stand-in: %w", err)
		}
		for until := time.Now().Add(standinEnds); time.Now().Before(until); time.Sleep(standinPause) {
			if !s.Alive() {
				return nil
			}
		}
	}
	return fmt.Errorf("end the GitHub stand-in: process %d does not end", s.PID)
}

// signal sends a signal to the stand-in and to no later process with its pid: the handle is bound to one
// process before its arguments are looked at (os.FindProcess opens a pidfd).
func (s *Standin) signal(signal syscall.Signal) error {
	handle, err := os.FindProcess(s.PID)
	if err != nil {
		return err
	}
	defer handle.Release()
	if !s.Alive() {
		return nil
	}
	if err := handle.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// lastLine is the last line of a log, for an error.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	lines := bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
	if err != nil || len(data) == 0 {
		return "see " + path
	}
	return string(lines[len(lines)-1])
}

// SendWebhooks makes the stand-in send its deliveries to an address, signed with a secret.
func (s *Standin) SendWebhooks(ctx context.Context, to net.Addr, secret string) error {
	body, err := json.Marshal(map[string]string{"target": fmt.Sprintf("http://%s/webhooks/github", to), "secret": secret})
	if err != nil {
		return fmt.Errorf("set webhooks: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.Addr+"/_standin/webhooks", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("set webhooks: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("set webhooks: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("set webhooks: the stand-in answered %s", response.Status)
	}
	return nil
}

// NewStandin is the stand-in of a directory, to be found or ended.
func NewStandin(dir string) *Standin { return &Standin{dir: dir} }

// HoldStandinDir makes the state directory of a stand-in and keeps other stand-ins out of it
// until the file is closed or this process dies.
func HoldStandinDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir %s: make it: %w", dir, err)
	}
	lock, free, err := safefile.TryLock(filepath.Join(dir, standinLock))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--state-dir %s: not writable: %w", dir, err)
	case !free:
		return nil, fmt.Errorf("--state-dir %s: another GitHub stand-in runs on it; end that one, or give another directory", dir)
	}
	return lock, nil
}

// ServeStandin runs the GitHub stand-in of a directory until ctx ends. It writes one line to stdout once it can be reached. What
// GitHub takes minutes to notice, this stand-in notices at once: see githubsim.QuickTimes.
func ServeStandin(ctx context.Context, l net.Listener, dir string, t StandinTimes, log hclog.Logger, stdout io.Writer) error {
	times := githubsim.QuickTimes
	times.API, times.Configure, times.Listen = t.API, t.Configure, t.Listen
	o := githubsim.Options{StateDir: dir, Log: log, Times: times}
	if t.Assign > 0 {
		o.Assignment = state.Assignment{Seed: rand.Uint64(), Within: t.Assign}
	}
	sim, err := githubsim.New(o)
	if err != nil {
		return err
	}
	if err := writeStandinID(dir, StandinID{PID: os.Getpid(), Addr: l.Addr().String()}); err != nil {
		return fmt.Errorf("--state-dir %s: %w", dir, err)
	}
	fmt.Fprintf(stdout, "ready github=%s state=%s\n", l.Addr(), dir)
	return sim.Serve(ctx, l)
}

// writeStandinID writes the file whole or not at all.
func writeStandinID(dir string, id StandinID) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return safefile.Replace(filepath.Join(dir, standinFile), data, 0o600, false)
}
