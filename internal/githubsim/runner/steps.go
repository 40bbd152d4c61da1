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

func (w *worker) runSteps(ctx context.Context) {
	for i, s := range w.job.Steps {
		name, err := w.stepName(s)
		if w.failed || ctx.Err() != nil {
			w.cut = w.cut || !w.failed
			w.skip(name)
			continue
		}
		w.begin(name)
		if err == nil {
			err = w.runStep(ctx, s, i)
		}
		w.end(err)
	}
}

func (w *worker) stepName(s step.Step) (string, error) {
	if len(s.Name) > 0 {
		return s.Name.Render(w.contexts(nil))
	}
	script, err := s.Run.Render(w.contexts(nil))
	first, _, _ := strings.Cut(strings.TrimSpace(script), "\n")
	return "Run " + first, err
}

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

func (w *worker) runStep(ctx context.Context, s step.Step, number int) error {
	env := map[string]string{}
	for _, v := range s.Env {
		value, err := v.Value.Render(w.contexts(nil))
		if err != nil {
			return fmt.Errorf("evaluate env %s: %w", v.Name, err)
		}
		env[v.Name] = value
	}
	text, err := s.Run.Render(w.contexts(env))
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
	env["GITHUB_ACTION"] = s.ID
	if s.ID == "" {
		env["GITHUB_ACTION"] = fmt.Sprintf("__run_%d", number+1)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.workspace, dir)
	}
	return w.exec(ctx, argv, dir, env)
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

// runHook runs the script that the environment variable names, if it is set. A hook that fails fails the job.
func (w *worker) runHook(ctx context.Context, name, variable string) {
	script := w.environ[variable]
	if script == "" {
		return
	}
	w.begin(name)
	w.logf("A job hook has been configured by the self-hosted runner administrator\nRun '%s'\n", script)
	if !strings.HasSuffix(script, ".sh") {
		w.end(fmt.Errorf("%s is not a valid path to a script. Make sure it ends in '.sh'", script))
		return
	}
	w.end(w.exec(ctx, shellOf("bash", script), w.workspace, nil))
}

// exec runs one script with the environment of the job and env, and takes over what it wrote to its command files.
func (w *worker) exec(ctx context.Context, argv []string, dir string, env map[string]string) error {
	files, err := newCommandFiles(w.temp)
	if err != nil {
		return err
	}
	all := maps.Clone(w.environ)
	maps.Copy(all, w.jobEnv)
	maps.Copy(all, env)
	maps.Copy(all, files)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	for k, v := range all {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if err := w.runCommand(ctx, cmd); err != nil {
		return err
	}
	return files.apply(w.jobEnv, w.environ)
}

// runCommand runs cmd with both outputs into the log, in the order they were written and in pieces of any length.
func (w *worker) runCommand(ctx context.Context, cmd *exec.Cmd) error {
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
		_, _ = io.Copy(w.report, r)
	}()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
	case <-ctx.Done():
		err = stopProcess(cmd.Process.Pid, w.tracking, exited)
	}
	select {
	case <-drained:
	case <-time.After(drainTime):
	}
	return w.verdict(ctx, err)
}

func (w *worker) verdict(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		w.cut = true
		return context.Cause(ctx)
	}
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
