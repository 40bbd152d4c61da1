package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// drainTime is how long a step whose shell has ended may still be written to by processes it left behind. What they write later
// is still logged while the job lasts.
const drainTime = time.Second

// killAfter is the patience with a step that is to stop: SIGINT, SIGTERM, SIGKILL, with the pauses of actions/runner.
var killAfter = []time.Duration{7500 * time.Millisecond, 2500 * time.Millisecond}

// contexts are what the expressions of a step see. stepEnv is the env of the step itself.
func (w *worker) contexts(stepEnv map[string]string) expr.Contexts {
	env := map[string]any{}
	for k, v := range w.jobEnv {
		env[k] = v
	}
	for k, v := range stepEnv {
		env[k] = v
	}
	return expr.Contexts{"github": w.job.GitHub, "matrix": w.job.Matrix, "env": env}
}

// stepEnv evaluates the env of a step.
func (w *worker) stepEnv(s step.Step) (map[string]string, error) {
	env := map[string]string{}
	for _, v := range s.Env {
		value, err := v.Value.Render(w.contexts(nil))
		if err != nil {
			return nil, fmt.Errorf("evaluate env %s: %w", v.Name, err)
		}
		env[v.Name] = value
	}
	return env, nil
}

func (w *worker) runStep(ctx context.Context, e entry, env map[string]string) error {
	s := e.step
	hasPost := len(s.Post) > 0 || s.Uses == step.Remuda
	if e.prefix != "Post " && hasPost && !w.registered[e.number] {
		// An action cleans up whichever of its scripts has begun (src/Runner.Worker/ActionRunner.cs:110).
		w.registered[e.number] = true
		w.posts = append(w.posts, entry{step: s, number: e.number, prefix: "Post ", script: s.Post, when: expr.StatusFunction("always")})
	}
	if w.image != "" && !w.contained {
		return message("Value cannot be null. (Parameter 'ContainerId')") // src/Runner.Worker/ActionRunner.cs:165
	}
	if s.Uses == step.Remuda {
		return w.runJavaScript(ctx, e, env)
	}
	text, err := e.script.Render(w.contexts(env))
	if err != nil {
		return fmt.Errorf("evaluate run: %w", err)
	}
	dir, err := s.WorkingDirectory.Render(w.contexts(env))
	if err != nil {
		return fmt.Errorf("evaluate working-directory: %w", err)
	}
	script := filepath.Join(w.temp, uuid.NewString()+".sh")
	if err := os.WriteFile(script, []byte(text+"\n"), 0o644); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	argv := shellOf(s.Shell, script)
	w.logf("##[group]Run %s\nshell: %s\n##[endgroup]\n", strings.TrimSpace(text), strings.Join(argv[:len(argv)-1], " ")+" {0}")
	vars := maps.Clone(w.jobEnv)
	maps.Copy(vars, env)
	vars["GITHUB_ACTION"] = s.ID
	if s.ID == "" {
		vars["GITHUB_ACTION"] = fmt.Sprintf("__run_%d", e.number+1)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.workspace, dir)
	}
	return w.exec(ctx, program{argv: argv, dir: dir, env: vars})
}

// startContainer pulls the image of the job's container. It goes no further: the steps of the job run outside it.
func (w *worker) startContainer(ctx context.Context) error {
	if err := w.exec(ctx, program{argv: []string{"docker", "pull", w.image}, dir: w.workspace}); err != nil {
		return err
	}
	w.contained = true
	return nil
}

// shellOf is how GitHub calls the shell (https://docs.github.com/actions/reference/workflow-syntax-for-github-actions, "shell").
func shellOf(shell, script string) []string {
	switch shell {
	case "bash":
		return []string{"bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script}
	case "sh":
		return []string{"sh", "-e", script}
	}
	return []string{"bash", "-e", script}
}

// hook runs a script of the runner's administrator. It gets no env of the job (actions/runner 2.336,
// src/Runner.Worker/JobHookProvider.cs:74), and bash has the options that a step without a shell has
// (src/Runner.Worker/Handlers/ScriptHandler.cs:207-216).
func (w *worker) hook(script string) func(context.Context) error {
	return func(ctx context.Context) error {
		w.logf("A job hook has been configured by the self-hosted runner administrator\nRun '%s'\n", script)
		if !strings.HasSuffix(script, ".sh") {
			return fmt.Errorf("%s is not a valid path to a script. Make sure it ends in '.sh'", script)
		}
		if _, err := os.Stat(script); err != nil {
			return message("File doesn't exist")
		}
		return w.exec(ctx, program{argv: shellOf("", script), dir: w.workspace})
	}
}

// program is one that a step starts.
type program struct {
	argv  []string
	dir   string
	env   map[string]string // beside that of the runner
	saved map[string]string // gets what it saves for its post script; nil: nothing does
	out   io.Writer         // gets its output; nil: the log
}

// exec runs a program, and takes over what it wrote to its command files, also if it failed (actions/runner 2.336,
// src/Runner.Worker/ActionRunner.cs, at the end of RunAsync).
func (w *worker) exec(ctx context.Context, p program) error {
	files, err := newCommandFiles(w.temp)
	if err != nil {
		return err
	}
	if p.out == nil {
		p.out = w.report
	}
	all := maps.Clone(w.environ)
	maps.Copy(all, p.env)
	maps.Copy(all, files)
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir = p.dir
	for k, v := range all {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	err = w.runCommand(ctx, cmd, p.out)
	if filesErr := files.apply(w.jobEnv, w.environ, p.saved); err == nil {
		err = filesErr
	}
	return err
}

// runCommand runs cmd with both outputs into log, in the order they were written and in pieces of any length.
func (w *worker) runCommand(ctx context.Context, cmd *exec.Cmd, log io.Writer) error {
	r, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Start()
	out.Close()
	if err != nil {
		r.Close()
		return fmt.Errorf("start %s: %w", cmd.Args[0], err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer r.Close()
		// The read ends with the last writer; the log takes everything, so there is no other error.
		_, _ = io.Copy(log, r)
	}()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stopped := false
	select {
	case err = <-exited:
	case <-w.ended:
		w.jobEnds(ctx)
		if stopped = !w.outlives(); stopped {
			err = stopProcess(cmd.Process.Pid, w.tracking, exited)
		} else {
			err = <-exited
		}
	}
	select {
	case <-drained:
	case <-time.After(drainTime):
	}
	if stopped {
		return context.Cause(ctx)
	}
	return verdict(err)
}

// verdict is the error of a process, in the words of actions/runner.
func verdict(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return message(fmt.Sprintf("Process completed with exit code %d.", exit.ExitCode()))
	case errors.As(err, &exit):
		return message(fmt.Sprintf("Process was ended by a signal (%s).", exit))
	}
	return err
}
