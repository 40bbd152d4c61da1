package host

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// manifest lists the parts of the runner's listener with their versions. .NET writes it
// when the program is built, so the version is known without running it.
const manifest = "runner/bin/Runner.Listener.deps.json"

// versionFormat is that of the releases of actions/runner.
var versionFormat = regexp.MustCompile(`^\d{1,6}\.\d{1,6}\.\d{1,6}$`)

// readRunnerVersion reads the version of the runner that is in its place, at the agent's start and before
// each registration. A job can write there, so what does not look like a version is ignored.
func (h *Host) readRunnerVersion() { h.version = runnerVersion(h.path(manifest)) }

func runnerVersion(path string) string {
	var m struct {
		Libraries map[string]json.RawMessage `json:"libraries"`
	}
	if data, err := safefile.Read(path); err != nil || json.Unmarshal(data, &m) != nil {
		return ""
	}
	found := ""
	for name := range m.Libraries {
		version, ok := strings.CutPrefix(name, "Runner.Listener/")
		if !ok {
			continue
		}
		if found != "" || !versionFormat.MatchString(version) {
			return ""
		}
		found = version
	}
	return found
}
