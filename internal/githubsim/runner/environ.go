package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
)

// Directories below RUNNER_TEMP, named as in actions/runner.
const (
	commandDir = "_runner_file_commands"
	eventDir   = "_github_workflow"
)

// fromContext are the GITHUB_ variables that are the property of the github context of the same name.
var fromContext = []string{
	"actor", "api_url", "base_ref", "event_name", "graphql_url", "head_ref", "job", "ref", "ref_name", "ref_type", "repository",
	"repository_id", "repository_owner", "run_attempt", "run_id", "run_number", "server_url", "sha", "triggering_actor", "workflow",
	"workflow_ref", "workflow_sha", "workspace",
}

// defaults are the runner's own environment and the default variables of a job
// (https://docs.github.com/actions/reference/variables-reference).
func (w *worker) defaults(environ []string, work string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		if key, value, found := strings.Cut(kv, "="); found {
			env[key] = value
		}
	}
	for _, name := range fromContext {
		env["GITHUB_"+strings.ToUpper(name)] = expr.Text(w.job.GitHub[name])
	}
	env["CI"], env["GITHUB_ACTIONS"] = "true", "true"
	env["GITHUB_EVENT_PATH"] = filepath.Join(w.temp, eventDir, "event.json")
	env["RUNNER_NAME"], env["RUNNER_OS"], env["RUNNER_ARCH"], env["RUNNER_ENVIRONMENT"] = w.settings.AgentName, "Linux", "X64", "self-hosted"
	tools := cmp.Or(env["RUNNER_TOOL_CACHE"], env["RUNNER_TOOLSDIRECTORY"], env["AGENT_TOOLSDIRECTORY"], filepath.Join(work, "_tool"))
	env["RUNNER_TEMP"], env["RUNNER_TOOL_CACHE"], env["RUNNER_WORKSPACE"] = w.temp, tools, filepath.Dir(w.workspace)
	if w.job.Hosted {
		env["RUNNER_ENVIRONMENT"] = "github-hosted"
	}
	if w.job.IDTokenURL != "" {
		env["ACTIONS_ID_TOKEN_REQUEST_URL"], env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = w.job.IDTokenURL, w.job.IDTokenSecret
	}
	env[trackingVariable] = w.tracking
	return env
}

// commandFiles are the files by which a step speaks to the runner.
type commandFiles map[string]string // variable to path

func newCommandFiles(temp string) (commandFiles, error) {
	files, id := commandFiles{}, uuid.NewString()
	for variable, prefix := range map[string]string{
		"GITHUB_ENV": "set_env_", "GITHUB_PATH": "add_path_", "GITHUB_OUTPUT": "set_output_", "GITHUB_STATE": "save_state_",
		"GITHUB_STEP_SUMMARY": "step_summary_",
	} {
		path := filepath.Join(temp, commandDir, prefix+id)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			return nil, fmt.Errorf("make command file: %w", err)
		}
		files[variable] = path
	}
	return files, nil
}

// apply takes GITHUB_ENV into env, GITHUB_PATH into the PATH of environ, and GITHUB_STATE into saved, which may be nil.
func (f commandFiles) apply(env, environ, saved map[string]string) error {
	for variable, into := range map[string]map[string]string{"GITHUB_ENV": env, "GITHUB_STATE": saved} {
		set, err := os.ReadFile(f[variable])
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read %s: %w", variable, err)
		}
		if into == nil {
			continue
		}
		if err := parseEnvFile(string(set), into); err != nil {
			return message(fmt.Sprintf("Unable to process file command '%s' successfully: %v", strings.ToLower(strings.TrimPrefix(variable, "GITHUB_")), err))
		}
	}
	paths, err := os.ReadFile(f["GITHUB_PATH"])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read GITHUB_PATH: %w", err)
	}
	for _, p := range strings.Split(string(paths), "\n") {
		if p = strings.TrimSpace(p); p != "" {
			environ["PATH"] = p + ":" + environ["PATH"]
		}
	}
	return nil
}

// parseEnvFile reads lines NAME=value and blocks NAME<<END … END.
func parseEnvFile(text string, env map[string]string) error {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\r")
		if line == "" {
			continue
		}
		equals, heredoc := strings.Index(line, "="), strings.Index(line, "<<")
		switch {
		case equals > 0 && (heredoc < 0 || equals < heredoc):
			env[line[:equals]] = line[equals+1:]
		case heredoc > 0 && line[heredoc+2:] != "":
			end := i + 1
			for end < len(lines) && strings.TrimSuffix(lines[end], "\r") != line[heredoc+2:] {
				end++
			}
			if end == len(lines) {
				return fmt.Errorf("invalid value: matching delimiter not found '%s'", line[heredoc+2:])
			}
			env[line[:heredoc]] = strings.Join(lines[i+1:end], "\n")
			i = end
		default:
			return fmt.Errorf("invalid format '%s'", line)
		}
	}
	return nil
}
