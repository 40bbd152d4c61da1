package runner

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ActionVariable is the variable of the runner's environment with the directory of step.Remuda, which GitHub's runner downloads. Node.js is
// that of the PATH.
const ActionVariable = "STANDIN_ACTION"

// metadata is what action.yml says of a JavaScript action
// (https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax).
type metadata struct {
	Inputs map[string]struct {
		Default string `yaml:"default"`
	} `yaml:"inputs"`
	Runs struct {
		Using, Main, Post string
	} `yaml:"runs"`
}

func readMetadata(dir string) (metadata, error) {
	var m metadata
	text, err := os.ReadFile(filepath.Join(dir, "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read the action in %s of %s: %w", dir, ActionVariable, err)
	}
	if !strings.HasPrefix(m.Runs.Using, "node") {
		return m, fmt.Errorf("the action in %s is %q, and not JavaScript", dir, m.Runs.Using)
	}
	return m, nil
}

// runJavaScript runs a phase of step.Remuda (actions/runner 2.336, src/Runner.Worker/Handlers/NodeScriptActionHandler.cs, RunAsync).
func (w *worker) runJavaScript(ctx context.Context, e entry, env map[string]string) error {
	dir := w.environ[ActionVariable]
	action, err := readMetadata(dir)
	if err != nil {
		return err
	}
	vars := maps.Clone(w.jobEnv)
	maps.Copy(vars, env)
	vars["GITHUB_ACTION"] = fmt.Sprintf("__remuda_%d", e.number+1) // GitHub's are other words, one for each step too
	for name, input := range action.Inputs {
		vars[inputVariable(name)] = input.Default
	}
	for _, input := range e.step.With {
		if vars[inputVariable(input.Name)], err = input.Value.Render(w.contexts(env)); err != nil {
			return fmt.Errorf("evaluate with.%s: %w", input.Name, err)
		}
	}
	if w.saved[e.number] == nil {
		w.saved[e.number] = map[string]string{}
	}
	for name, value := range w.saved[e.number] {
		vars["STATE_"+name] = value
	}
	script := action.Runs.Main
	if e.prefix == "Post " {
		script = action.Runs.Post
	}
	w.logf("##[group]Run %s\n##[endgroup]\n", e.step.Uses)
	out := &commandLog{to: w.report}
	defer out.flush()
	return w.exec(ctx, program{
		argv: []string{"node", filepath.Join(dir, script)}, dir: w.workspace, env: vars, saved: w.saved[e.number], out: out,
	})
}

// inputVariable is the variable of an input (src/Runner.Worker/Handlers/Handler.cs, AddInputsToEnvironment).
func inputVariable(name string) string {
	return "INPUT_" + strings.ToUpper(strings.ReplaceAll(name, " ", "_"))
}
