// Package runnerfiles is the configuration of a runner on disk: .runner, .credentials and .credentials_rsaparams, as actions/runner
// names and shapes them.
package runnerfiles

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// The names of the files. Only RSAParams holds a secret.
const (
	Runner      = ".runner"
	Credentials = ".credentials"
	RSAParams   = ".credentials_rsaparams"
)

// bom begins every JSON file that actions/runner writes; what reads one must bear it.
var bom = []byte("\xef\xbb\xbf")

// ErrNotConfigured is returned by Load where no runner is configured.
var ErrNotConfigured = errors.New("not configured")

// Settings is the content of .runner (actions/runner 2.336, src/Runner.Common/ConfigurationStore.cs:14-60).
type Settings struct {
	AgentID            int64  `json:"agentId"`
	AgentName          string `json:"agentName"`
	PoolID             int    `json:"poolId"`
	PoolName           string `json:"poolName"`
	ServerURL          string `json:"serverUrl"`
	GitHubURL          string `json:"gitHubUrl"`
	WorkFolder         string `json:"workFolder"` // relative to the runner's directory unless absolute
	Ephemeral          bool   `json:"ephemeral,omitempty"`
	DisableUpdate      bool   `json:"disableUpdate,omitempty"`
	UseV2Flow          bool   `json:"useV2Flow,omitempty"`
	UseRunnerAdminFlow bool   `json:"useRunnerAdminFlow,omitempty"`

	// Times is not in the file of actions/runner.
	Times protocol.Times `json:"standInTimes"`
}

type credentials struct {
	Scheme string            `json:"scheme"`
	Data   map[string]string `json:"data"`
}

// secretParams stands where actions/runner keeps an RSA key: the stand-in's credential is a plain secret.
type secretParams struct {
	D []byte `json:"d"`
}

// Files makes the content of the three files.
func Files(s Settings, secret string) (map[string][]byte, error) {
	s.PoolID, s.PoolName = 1, "Default"
	out := map[string][]byte{}
	for name, v := range map[string]any{
		Runner: s,
		Credentials: credentials{"OAuth", map[string]string{
			"clientId": fmt.Sprintf("standin-%d", s.AgentID), "authorizationUrl": s.ServerURL + "/_standin", "requireFipsCryptography": "False",
		}},
		RSAParams: secretParams{[]byte(secret)},
	} {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		out[name] = append(bytes.Clone(bom), text...)
	}
	return out, nil
}

// Decode reads the encoded configuration of a just-in-time runner.
func Decode(jit string) (map[string][]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(jit)
	if err != nil {
		return nil, fmt.Errorf("decode JIT configuration: not base64") // the error would quote the secret
	}
	files := map[string][]byte{}
	if json.Unmarshal(raw, &files) != nil {
		return nil, fmt.Errorf("decode JIT configuration: not what generate-jitconfig gives")
	}
	return files, nil
}

// Save writes the files below dir. .runner comes last: with it there the runner counts as configured.
func Save(dir string, files map[string][]byte) error {
	for _, name := range []string{RSAParams, Credentials, Runner} {
		content, ok := files[name]
		if !ok {
			return fmt.Errorf("save configuration: %s is missing", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("save configuration: %w", err)
		}
	}
	return nil
}

// Load reads the settings and the secret below dir, or returns ErrNotConfigured.
func Load(dir string) (Settings, string, error) {
	var s Settings
	var p secretParams
	for name, into := range map[string]any{Runner: &s, RSAParams: &p} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return s, "", ErrNotConfigured
		}
		if err != nil {
			return s, "", fmt.Errorf("read configuration: %w", err)
		}
		if err := json.Unmarshal(bytes.TrimPrefix(content, bom), into); err != nil {
			return s, "", fmt.Errorf("read configuration: %s is not what configure wrote", name)
		}
	}
	return s, string(p.D), nil
}

// Delete removes one of the files and reports whether it was there.
func Delete(dir, name string) (bool, error) {
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
