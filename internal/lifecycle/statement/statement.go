// Package statement has the signed statement of a reset: what the agent of a host says that it renewed and checked between two runs, so
// that others can verify who said it, and that it was not changed.
//
// It is a Statement v1 of in-toto (https://github.com/in-toto/attestation) in a DSSE envelope, signed by ed25519. The package
// is pure: keys are made and kept elsewhere.
package statement

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The types that a statement names.
const (
	// Type is that of a Statement v1 of in-toto.
	Type = "https://in-toto.io/Statement/v1"
	// ResetType is that of its predicate, which is a Reset.
	ResetType = "https://remuda-ci.github.io/reset/v1"
)

// Level says how thoroughly a host is renewed between two runs.
type Level string

// LevelSlate is the clean slate: everything that runs have left is ended, removed or renewed, and then the host is compared with what it was.
const LevelSlate Level = "slate"

// LevelRootVolume is the clean slate of a host on a new root volume, with which the cloud has replaced that of the runs before.
const LevelRootVolume Level = "root-volume"

// Levels lists the levels at which a host is renewed, the default first.
var Levels = []Level{LevelSlate, LevelRootVolume}

// Result is how a reset ended.
type Result string

// The results.
const (
	ResultClean  Result = "clean"
	ResultFailed Result = "failed" // the host serves no other run
)

// Reset is the predicate of a statement, and its subject.
type Reset struct {
	// Host is the instance id of the host, which is the subject.
	Host   string `json:"-"`
	BootID string `json:"bootId"`
	// Assignment is that of the release. A run that claims the host next has the assignment after it.
	Assignment int64 `json:"assignment"`
	// RunBefore is the last run before the reset, "owner/name/id"; empty: there was none, or the agent does not know it.
	RunBefore string `json:"runBefore,omitempty"`
	Level     Level  `json:"level"`
	// Done are the steps that were done without an error, in order.
	Done []string `json:"done,omitempty"`
	// Checked are the checks that came after them. One that is missing was not made.
	Checked []Check `json:"checked,omitempty"`
	Result  Result  `json:"result"`
	// BegunAt and EndedAt are by the clock of the host.
	BegunAt time.Time `json:"begunAt"`
	EndedAt time.Time `json:"endedAt"`
	// AgentVersion is the version of agentd.
	AgentVersion string `json:"agentVersion"`
	// KeyWithinReach: jobs of this host may become root, or run as the agent's user, and so could have read the key and signed this.
	KeyWithinReach bool `json:"keyWithinReach"`
}

// Check is one check and how many findings it has.
type Check struct {
	Name     string `json:"name"`
	Findings int    `json:"findings"`
}

// Before splits RunBefore into the repository and the id of the run.
func (r Reset) Before() (repository, runID string) {
	at := strings.LastIndexByte(r.RunBefore, '/')
	if at < 0 {
		return "", r.RunBefore
	}
	return r.RunBefore[:at], r.RunBefore[at+1:]
}

// Did adds a step that was done.
func (r *Reset) Did(step string) { r.Done = append(r.Done, step) }

// Check adds a check.
func (r *Reset) Check(name string, findings int) {
	r.Checked = append(r.Checked, Check{name, findings})
}

// Findings are those of all checks.
func (r Reset) Findings() int {
	n := 0
	for _, c := range r.Checked {
		n += c.Findings
	}
	return n
}

// body is the statement as it is signed.
type body struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Reset     `json:"predicate"`
}

// subject names a host. Its digest is the SHA-256 of the name, since in-toto asks for one.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

func subjectOf(host string) subject {
	sum := sha256.Sum256([]byte(host))
	return subject{host, map[string]string{"sha256": hex.EncodeToString(sum[:])}}
}

// Sign returns the envelope of a statement about the reset.
func Sign(r Reset, key ed25519.PrivateKey) (envelope string, err error) {
	payload, err := json.Marshal(body{Type, []subject{subjectOf(r.Host)}, ResetType, r})
	if err != nil {
		return "", fmt.Errorf("encode statement: %w", err)
	}
	return seal(payload, key)
}

// Open returns the reset that an envelope speaks of. An error means that it is no statement of a reset by this key.
func Open(envelope string, key Key) (Reset, error) {
	payload, err := unseal(envelope, key)
	if err != nil {
		return Reset{}, err
	}
	var b body
	if err := json.Unmarshal(payload, &b); err != nil {
		return Reset{}, errors.New("its payload is no statement of in-toto")
	}
	switch {
	case b.Type != Type:
		return Reset{}, errors.New("its payload is no Statement v1 of in-toto")
	case b.PredicateType != ResetType:
		return Reset{}, errors.New("its statement is not about a reset")
	case len(b.Subject) != 1 || b.Subject[0].Name == "" || b.Subject[0].Digest["sha256"] != subjectOf(b.Subject[0].Name).Digest["sha256"]:
		return Reset{}, errors.New("its subject is not one host with the digest of its name")
	}
	b.Predicate.Host = b.Subject[0].Name
	return b.Predicate, nil
}

// Shows returns an error that says why a reset does not show that the host is clean for the assignment.
func (r Reset) Shows(host string, assignment int64, bootID string) error {
	switch {
	case r.Host != host:
		return errors.New("it is about another host")
	case r.Assignment != assignment:
		return fmt.Errorf("it is about assignment %d", r.Assignment)
	case r.BootID != bootID:
		return errors.New("it is from another boot")
	case r.Result != ResultClean || r.Findings() > 0 || len(r.Checked) == 0:
		return errors.New("it does not say that the host is clean")
	}
	return nil
}
