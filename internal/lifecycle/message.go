package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxMessage bounds a queue message; ours are below 1 KiB.
const maxMessage = 8 << 10

// ParseMessage reads the body of a queue message. Unknown fields are allowed,
// since other producers may add their own, and `instanceId` is taken for `id`.
func ParseMessage(body []byte) (Message, error) {
	if len(body) > maxMessage {
		return Message{}, fmt.Errorf("parse queue message: %d bytes, at most %d allowed", len(body), maxMessage)
	}
	var m struct {
		Message
		Alias string `json:"instanceId"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return Message{}, fmt.Errorf("parse queue message: %w", err)
	}
	if m.InstanceID == "" {
		m.InstanceID = m.Alias
	}
	if m.HostKey == "" {
		m.HostKey = m.InstanceID
	}
	if err := m.check(); err != nil {
		return Message{}, err
	}
	return m.Message, nil
}

func (m Message) check() error {
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
