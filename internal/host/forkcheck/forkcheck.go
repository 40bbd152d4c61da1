// Package forkcheck decides by the payload of a job's event whether the job is of a fork. It is the command `agentd check-fork`, which the
// job-started hook runs as the runner's user.
package forkcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/safefile"
)

var (
	// ErrFork means that the job is of a pull request from another repository than its own, or from one that is gone.
	ErrFork = errors.New("the job is of a fork")
	// ErrUnreadable means that the payload does not say what the job is of, so it may be of a fork.
	ErrUnreadable = errors.New("cannot read the payload of the job's event")
)

// Exit statuses of the command; 0 means that the job is not of a fork. The hook takes any other status for ExitUnreadable, such as that
// of a program that is missing or was killed.
const (
	ExitFork       = 1
	ExitUnreadable = 2
)

// ExitCode returns the exit status for an error of FromEnvironment.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrFork):
		return ExitFork
	}
	return ExitUnreadable
}

// FromEnvironment checks the job that this process runs in, by the variables that the runner sets. It returns nil if the job is not of a
// fork, ErrFork if it is, and else an error that wraps ErrUnreadable.
func FromEnvironment() error {
	fork, err := check(os.Getenv("GITHUB_EVENT_PATH"), os.Getenv("GITHUB_EVENT_NAME"))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	case fork:
		return ErrFork
	}
	return nil
}

// maxPayload is the size of the largest payload that is read, in bytes. GitHub sends webhooks of at most 25 MB, and the runner indents
// what it writes (actions/runner 2.336, src/Runner.Worker/ExecutionContext.cs 691 and 1320-1336).
const maxPayload = 64 << 20

// check reports whether the job of an event is of a fork. The payload is in the file.
func check(path, event string) (fork bool, err error) {
	if path == "" {
		return false, errors.New("GITHUB_EVENT_PATH is not set")
	}
	f, err := safefile.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	payload, err := io.ReadAll(io.LimitReader(f, maxPayload+1))
	if err == nil && len(payload) > maxPayload {
		err = fmt.Errorf("more than %d bytes", maxPayload)
	}
	if err == nil {
		fork, err = isFork(payload, event)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return fork, nil
}

// isFork reports whether the payload has a pull request whose head and base are not in the same repository. Events without a pull request
// run a commit of the job's own repository.
func isFork(payload json.RawMessage, event string) (bool, error) {
	pull, err := lookUp(payload, "pull_request")
	switch {
	case err != nil:
		return false, err
	case pull == nil && strings.HasPrefix(event, "pull_request"):
		return false, fmt.Errorf("event %s without a pull request", event)
	case pull == nil:
		return false, nil
	}
	head, err := repositoryID(pull, "head")
	if err != nil {
		return false, err
	}
	base, err := repositoryID(pull, "base")
	if err != nil {
		return false, err
	}
	return head == 0 || head != base, nil
}

// repositoryID returns the id of the repository of a side of a pull request, head or base. It returns 0 if the payload has none, as for a
// fork that is gone, whose repo is null.
func repositoryID(pull json.RawMessage, side string) (int64, error) {
	text, err := lookUp(pull, side, "repo", "id")
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil { // there is none, or it is no number
		return 0, nil
	}
	return id, nil
}

// lookUp follows names through nested objects. It returns nil if a member on the way is missing or null.
func lookUp(value json.RawMessage, names ...string) (json.RawMessage, error) {
	for _, name := range names {
		var err error
		if value, err = member(value, name); err != nil || value == nil {
			return nil, err
		}
	}
	return value, nil
}

// member returns the member of an object, nil if it is missing or null. Names match in any letter case, as those of the fields of a struct do
// in package json. A name that occurs twice is an error, since readers differ in the member that they take. Decoder checks the whole object.
func member(object json.RawMessage, name string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if err := expect(dec, json.Delim('{')); err != nil {
		return nil, fmt.Errorf("look for %s: %w", name, err)
	}
	var found json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		switch text, _ := key.(string); {
		case !strings.EqualFold(text, name):
		case found != nil:
			return nil, fmt.Errorf("%s occurs twice", name)
		default:
			found = value
		}
	}
	if err := expect(dec, json.Delim('}')); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	if string(found) == "null" {
		return nil, nil
	}
	return found, nil
}

// expect reads a token, which must be the given one.
func expect(dec *json.Decoder, want json.Delim) error {
	got, err := dec.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v in the place of %v", got, want)
	}
	return err
}
