package host

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// agentKeyFile has the key that signs the statements of resets. Where tasks are units it belongs to root in a directory that is closed to
// jobs. A copy of the disk, such as an image that was made of a used host, does not take the key along: the file names its host.
const agentKeyFile = "state/agent.key"

// agentKey is the content of agentKeyFile.
type agentKey struct {
	Host string `json:"host"`
	Seed []byte `json:"seed"`
}

// errNoKey means that the host has no key of its own.
var errNoKey = errors.New("this host has no key")

// readKey reads the key of a host.
func (h *Host) readKey(host string) (ed25519.PrivateKey, error) {
	data, err := safefile.Read(h.path(agentKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's key: %w", err)
	}
	var k agentKey
	if json.Unmarshal(data, &k) != nil || len(k.Seed) != ed25519.SeedSize || k.Host != host {
		return nil, errNoKey
	}
	return ed25519.NewKeyFromSeed(k.Seed), nil
}

// ensureKey sets the public key of the agent, and makes the key before that if there is none. A host without a key works, and its
// clean-ups have no statement.
func (h *Host) ensureKey() {
	key, err := h.readKey(h.o.InstanceID)
	if errors.Is(err, errNoKey) {
		key, err = h.makeKey()
	}
	if err != nil {
		h.log.Error("the clean-ups of this host will have no signed statement", logkey.Error, err)
		return
	}
	h.publicKey = statement.KeyOf(key)
}

func (h *Host) makeKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	data, err := json.Marshal(agentKey{h.o.InstanceID, key.Seed()})
	if err == nil {
		err = writeFile(h.path(agentKeyFile), data)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the agent's key: %w", err)
	}
	return key, nil
}

// sign returns the signed statement of a reset; empty if that cannot be made, which is logged. controld refuses the clean-up then, if
// it knows a key of this host.
func (h *Host) sign(r statement.Reset) string {
	key, err := h.readKey(r.Host)
	var text string
	if err == nil {
		text, err = statement.Sign(r, key)
	}
	if err != nil {
		h.log.Error("no signed statement of this clean-up", logkey.Error, err)
	}
	return text
}
