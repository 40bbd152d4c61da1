// Package hint holds what the queues of idle hosts have in common: their
// times, their bounds and the form of a handle.
package hint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// Visibility is how long a received message is hidden from others. It must outlast the selection of hosts
	// by one request, which waits for each receive at most 1 s; longer, it only keeps the host of a request
	// that crashed out of sight (the by-pool index still finds it).
	Visibility = 30 * time.Second
	// Retention is how long a message is kept. It should outlast the idle time of a pool. A host may wait for longer:
	// a fresh one for its warm time, any during an outage of GitHub. Then its message goes, and the by-pool index
	// finds the host. A message of a host that is gone costs one failed claim.
	Retention = 24 * time.Hour
	// MaxBatch is how many messages one call may receive, delete or return.
	// It is the bound of SQS, and so of every queue.
	MaxBatch = 10
)

// QueueOf is the queue that a message belongs to.
func QueueOf(m lifecycle.Message) lifecycle.QueueName {
	return lifecycle.QueueName{ResourceClass: m.ResourceClass, UsageClass: m.UsageClass}
}

// Handle names one delivery of a message, so that the handle of an earlier
// delivery says nothing about a later one.
func Handle(id, receives int64) string { return fmt.Sprintf("%d.%d", id, receives) }

// ParseHandle is the reverse of Handle; ok is false for what is no handle.
func ParseHandle(handle string) (id, receives int64, ok bool) {
	left, right, _ := strings.Cut(handle, ".")
	id, errID := strconv.ParseInt(left, 10, 64)
	receives, errReceives := strconv.ParseInt(right, 10, 64)
	return id, receives, errID == nil && errReceives == nil
}

// CheckLimit returns what is wrong with the limit of a receive.
func CheckLimit(limit int) error {
	if limit < 1 || limit > MaxBatch {
		return fmt.Errorf("receive messages: limit %d is not in 1 to %d", limit, MaxBatch)
	}
	return nil
}

// CheckHandles returns what is wrong with the number of handles of a call.
// None is allowed: there is nothing to do.
func CheckHandles(what string, handles []string) error {
	if len(handles) > MaxBatch {
		return fmt.Errorf("%s: %d handles, at most %d allowed", what, len(handles), MaxBatch)
	}
	return nil
}

// maxMessage bounds a queue message; ours are below 1 KiB.
const maxMessage = 8 << 10

// ParseMessage reads the body of a queue message. Unknown fields are allowed,
// since other producers may add their own, and `instanceId` is taken for `id`.
func ParseMessage(body []byte) (lifecycle.Message, error) {
	if len(body) > maxMessage {
		return lifecycle.Message{}, fmt.Errorf("parse queue message: %d bytes, at most %d allowed", len(body), maxMessage)
	}
	var m struct {
		lifecycle.Message
		Alias string `json:"instanceId"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return lifecycle.Message{}, fmt.Errorf("parse queue message: %w", err)
	}
	m.InstanceID = cmp.Or(m.InstanceID, m.Alias)
	m.HostKey = cmp.Or(m.HostKey, m.InstanceID)
	if err := check(m.Message); err != nil {
		return lifecycle.Message{}, err
	}
	return m.Message, nil
}

func check(m lifecycle.Message) error {
	switch {
	case m.InstanceID == "":
		return errors.New("parse queue message: id is missing")
	case m.Assignment < 0:
		return errors.New("parse queue message: assignment is negative")
	case m.CPU < 0 || m.MemoryMiB < 0:
		return errors.New("parse queue message: cpu or mmem is negative")
	}
	return nil
}
