package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
	"github.com/remuda-ci/remuda/internal/local"
)

// actionTools install the Node.js that GitHub runs the Action with.
var actionTools = pinned.Tools{
	Script: "scripts/action-tools",
	Files:  []string{"action/package-lock.json", "action/action.yml", "action/dist/index.mjs"},
}

// node is that program, and the program of the Action.
func node(t *testing.T) (program, script string) {
	t.Helper()
	tools, err := actionTools.Install()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(tools.Dir, "bin", "node"), filepath.Join(tools.Root, "action", "dist", "index.mjs")
}

// actionStep is one step of a run that uses the Action, as the runner starts it: with inputs, files for what it tells, and ID tokens of the stand-in.
type actionStep struct {
	*stage
	runID  string
	inputs map[string]string
	tokens *tokenService // nil: the job may not ask for ID tokens
	dir    string
	state  map[string]string // what its phases have saved
	log    local.Log
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd has ended, with err
	err    error
}

// step makes a step. Its inputs reach the controld of the stage.
func (s *stage) step(runID string, inputs map[string]string) *actionStep {
	s.Helper()
	all := map[string]string{"address": "http://" + s.daemon.GRPCAddr, "audience": audience, "timeout": "5m"}
	if s.authority != nil {
		authority, err := os.ReadFile(s.authority.file)
		if err != nil {
			s.Fatal(err)
		}
		all["address"], all["ca"] = s.daemon.GRPCAddr, string(authority)
	}
	for name, value := range inputs {
		all[name] = value
	}
	return &actionStep{stage: s, runID: runID, inputs: all, tokens: s.newTokenService(runID), dir: s.TempDir(), state: map[string]string{}}
}

// begin starts the next phase of the step.
func (a *actionStep) begin() {
	a.Helper()
	program, script := node(a.T)
	a.cmd = exec.Command(program, script)
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	a.cmd.Env = []string{
		"PATH=/nowhere", "GITHUB_REPOSITORY=" + repository, "GITHUB_RUN_ID=" + a.runID, "GITHUB_RUN_ATTEMPT=1", "GITHUB_JOB=hosts", "GITHUB_ACTION=__self",
	}
	for _, variable := range []string{"GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"} {
		a.cmd.Env = append(a.cmd.Env, variable+"="+filepath.Join(a.dir, variable))
	}
	if a.tokens != nil {
		a.cmd.Env = append(a.cmd.Env, "ACTIONS_ID_TOKEN_REQUEST_URL="+a.tokens.server.URL+"?run=1", "ACTIONS_ID_TOKEN_REQUEST_TOKEN="+requestSecret)
	}
	for name, value := range a.inputs {
		a.cmd.Env = append(a.cmd.Env, "INPUT_"+strings.ToUpper(name)+"="+value)
	}
	for name, value := range a.state {
		a.cmd.Env = append(a.cmd.Env, "STATE_"+name+"="+value)
	}
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
	a.ended = make(chan struct{})
	go func() {
		defer close(a.ended)
		a.err = a.cmd.Wait()
	}()
	a.Cleanup(func() {
		_ = a.cmd.Process.Kill() // it has ended, in a test that passes
		<-a.ended
	})
}

// end waits for the phase to end with an exit code.
func (a *actionStep) end(code int) {
	a.Helper()
	select {
	case <-a.ended:
	case <-a.ctx.Done():
		a.Fatalf("the step of run %s does not end:\n%s", a.runID, &a.log)
	}
	var exit *exec.ExitError
	if a.err != nil && !errors.As(a.err, &exit) {
		a.Fatal(a.err)
	}
	if got := a.cmd.ProcessState.ExitCode(); got != code {
		a.Errorf("the step of run %s ended with %d and not %d:\n%s", a.runID, got, code, &a.log)
	}
	a.state = a.told("GITHUB_STATE")
}

// phase runs one phase of the step.
func (a *actionStep) phase(code int) {
	a.Helper()
	a.begin()
	a.end(code)
}

// told are the values that the step wrote to one of its files.
func (a *actionStep) told(variable string) map[string]string {
	a.Helper()
	values := map[string]string{}
	lines := strings.Split(a.text(variable), "\n")
	for i := 0; i < len(lines)-1; i++ {
		name, end, _ := strings.Cut(lines[i], "<<")
		last := i + 1 + slices.Index(lines[i+1:], end)
		if last <= i {
			a.Fatalf("%s has no end of %s:\n%s", variable, name, a.text(variable))
		}
		values[name] = strings.Join(lines[i+1:last], "\n")
		i = last
	}
	return values
}

// text is what the step wrote to one of its files.
func (a *actionStep) text(variable string) string {
	a.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, variable))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.Fatal(err)
	}
	return string(text)
}

// says fails unless a text is in the log of the step.
func (a *actionStep) says(text string) {
	a.Helper()
	if !strings.Contains(a.log.String(), text) {
		a.Errorf("the step of run %s does not say %q:\n%s", a.runID, text, &a.log)
	}
}

// saysBefore waits for a text in the log of the step.
func (a *actionStep) saysBefore(text string) {
	a.Helper()
	a.eventually(func() string {
		select {
		case <-a.ended:
			a.says(text)
			a.FailNow()
		default:
		}
		if !strings.Contains(a.log.String(), text) {
			return fmt.Sprintf("the step of run %s does not say %q:\n%s", a.runID, text, &a.log)
		}
		return ""
	})
}

// keepsSecrets fails if a token is in the log other than in the command that has the runner hide it.
func (a *actionStep) keepsSecrets() {
	a.Helper()
	for line := range strings.Lines(a.log.String()) {
		if !strings.HasPrefix(line, "::add-mask::") && (strings.Contains(line, "eyJ") || strings.Contains(line, requestSecret)) {
			a.Errorf("there is a secret in the log: %.80s", line)
		}
	}
}

// requestSecret is what a job shows to the token service.
const requestSecret = "what the runner gives to the job"

// tokenService gives the ID tokens of the stand-in to a job, over the protocol of GitHub's.
type tokenService struct {
	server *httptest.Server
	mu     sync.Mutex
	given  int
	// alter changes the claims of a token, given how many there were before; nil: none. It returns false for a service that fails.
	alter func(n int, claims map[string]any) bool
}

func (s *stage) newTokenService(runID string) *tokenService {
	service := &tokenService{}
	service.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.mu.Lock()
		defer service.mu.Unlock()
		n := service.given
		service.given++
		claims := with(s.rightClaims(), "run_id", runID, "aud", r.URL.Query().Get("audience"))
		if r.Header.Get("Authorization") != "Bearer "+requestSecret {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if service.alter != nil && !service.alter(n, claims) {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		token, err := s.github.IDToken(r.Context(), claims)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": token}) // a client that goes away fails its own step
	}))
	s.Cleanup(service.server.Close)
	return service
}
