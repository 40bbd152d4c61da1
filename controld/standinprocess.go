package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/remuda-ci/remuda/internal/config"
)

const (
	// standinWithin bounds the start of a stand-in, with a journal to read.
	standinWithin = 10 * time.Second
	// standinAnswers bounds one question to it, on this machine.
	standinAnswers = time.Second
	// standinEnds is how long it may take to end by itself; then it is killed.
	standinEnds = time.Second
	// standinLook is the pause between two looks at it.
	standinLook = 10 * time.Millisecond
)

// standin is the GitHub stand-in's process, which outlives dev when that is
// killed: runs and registrations go on, as on GitHub.
type standin struct {
	standinID
	dir string
	// exited is closed when our own child has ended; nil for one that was
	// there before.
	exited chan struct{}
}

// startStandin attaches to the stand-in of the directory, or to one that
// somebody else runs at addr and that is left alone at the end, or starts one;
// and waits until it answers.
func startStandin(ctx context.Context, program, addr, dir string) (*standin, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, standinWithin, fmt.Errorf("the GitHub stand-in did not answer within %s", standinWithin))
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start the GitHub stand-in: %w", err)
	}
	s := &standin{dir: dir}
	if !s.held() && answers(ctx, addr) {
		s.Addr = addr
		return s, nil
	}
	for {
		if s.exited == nil && !s.held() {
			if err := s.start(program, addr); err != nil {
				return nil, fmt.Errorf("start the GitHub stand-in: %w", err)
			}
		}
		if s.find() && answers(ctx, s.Addr) {
			return s, nil
		}
		select {
		case <-s.exited:
			return nil, fmt.Errorf("the GitHub stand-in ended: %s", lastLine(filepath.Join(dir, standinLog)))
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), s.undo())
		case <-time.After(standinLook):
		}
	}
}

// held reports whether a stand-in lives on the directory. It must not be asked
// while our own child starts, which could find its lock taken.
func (s *standin) held() bool {
	lock, free, err := lockFile(filepath.Join(s.dir, standinLock))
	if free {
		lock.Close()
	}
	return err == nil && !free
}

// start starts a stand-in in a session of its own, out of reach of what a
// terminal sends to dev.
func (s *standin) start(program, addr string) error {
	log, err := os.OpenFile(filepath.Join(s.dir, standinLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.Remove(filepath.Join(s.dir, standinFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := exec.Command(program, "github-standin", "--addr", addr, "--state-dir", s.dir)
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

// find learns who the stand-in is from the file that it wrote.
func (s *standin) find() bool {
	data, err := os.ReadFile(filepath.Join(s.dir, standinFile))
	if err != nil {
		return false
	}
	var id standinID
	if json.Unmarshal(data, &id) != nil || (s.exited != nil && id.PID != s.PID) {
		return false
	}
	found := standin{standinID: id, dir: s.dir}
	if !found.lives() {
		return false
	}
	s.standinID = id
	return true
}

// url is that of its API.
func (s *standin) url() string { return "http://" + s.Addr + "/api/v3" }

// lives reports whether the process is there and is a stand-in of the
// directory: its pid may long be another's.
func (s *standin) lives() bool {
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

// answers asks for what costs nothing and is counted nowhere. What takes the
// address and does not answer soon is no stand-in.
func answers(ctx context.Context, addr string) bool {
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

// undo ends a stand-in that was started here. Another is left to the hosts that
// may be using it.
func (s *standin) undo() error {
	if s.exited == nil {
		return nil
	}
	return s.end()
}

// end ends the stand-in, in good order while there is time.
func (s *standin) end() error {
	if s.PID == 0 {
		return nil // it was never found, or is somebody else's
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := s.signal(signal); err != nil {
			return fmt.Errorf("end the GitHub stand-in: %w", err)
		}
		for until := time.Now().Add(standinEnds); time.Now().Before(until); time.Sleep(standinLook) {
			if !s.lives() {
				return nil
			}
		}
	}
	return fmt.Errorf("end the GitHub stand-in: process %d does not end", s.PID)
}

// signal sends a signal to the stand-in and to no later process with its pid:
// the handle is bound to one process before its arguments are looked at
// (os.FindProcess opens a pidfd).
func (s *standin) signal(signal syscall.Signal) error {
	handle, err := os.FindProcess(s.PID)
	if err != nil {
		return err
	}
	defer handle.Release()
	if !s.lives() {
		return nil
	}
	if err := handle.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// lastLine is the end of a log, for an error.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	lines := bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
	if err != nil || len(data) == 0 {
		return "see " + path
	}
	return string(lines[len(lines)-1])
}

// sendWebhooks has the stand-in send its deliveries to an address, signed with
// the first secret of a configuration. Without one nothing is taken, and none
// are sent.
func (s *standin) sendWebhooks(ctx context.Context, to net.Addr, c *config.Webhooks) error {
	if c == nil {
		return nil
	}
	source, _ := webhookSecrets(c)
	secrets, err := source()
	if err != nil {
		return &configError{err}
	}
	body, err := json.Marshal(map[string]string{
		"target": fmt.Sprintf("http://%s/webhooks/github", to), "secret": secrets[0].Reveal(),
	})
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
