package hint

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
	if m.InstanceID == "" {
		m.InstanceID = m.Alias
	}
	if m.HostKey == "" {
		m.HostKey = m.InstanceID
	}
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
