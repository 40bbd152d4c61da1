package mutation

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed chosen/chosen.go
var chosenSource []byte

// overlay is what the compiler reads instead of the files of the tree.
type overlay struct {
	dir     string
	Replace map[string]string
}

func (o *overlay) put(path string, text []byte) error {
	replacement := filepath.Join(o.dir, fmt.Sprintf("%d.go", len(o.Replace)))
	o.Replace[path] = replacement
	return os.WriteFile(replacement, text, 0o600)
}

// write writes the list of the replaced files, and returns its path.
func (o *overlay) write() (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// find returns all mutants of the packages of a tree, and writes the files that have them into an overlay.
func (t *tree) find(o *overlay) ([]Mutant, error) {
	var all []Mutant
	for _, l := range t.packages {
		if l.forTests() {
			continue
		}
		sources, err := t.load(l)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			relative, err := filepath.Rel(t.root, s.path)
			if err != nil {
				return nil, err
			}
			mutants, text := mutate(s, relative, len(all))
			if len(mutants) == 0 {
				continue
			}
			all = append(all, mutants...)
			name := s.fset.Position(s.file.Name.End()).Offset
			text = []byte(string(text[:name]) + fmt.Sprintf("; import mutant_ %q", t.runtime()) + string(text[name:]))
			if err := o.put(s.path, text); err != nil {
				return nil, err
			}
		}
	}
	return all, o.put(filepath.Join(t.root, filepath.FromSlash(strings.TrimPrefix(t.runtime(), t.module)), "chosen.go"), chosenSource)
}

// runtime is the path under which mutated code imports package chosen. There is no such directory.
func (t *tree) runtime() string { return t.module + "/internal/mutationchosen" }

// build compiles the tests of a package with the overlay, and returns the test binary.
func (t *tree) build(ctx context.Context, l listed, overlay, dir string, number int) (binary, error) {
	path := filepath.Join(dir, fmt.Sprintf("%d.test", number))
	args := append([]string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", path}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, l.ImportPath)...)
	cmd.Dir, cmd.Env = t.dir, append(os.Environ(), buildEnviron...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return binary{}, fmt.Errorf("build the tests of %s with all mutants: %w\n%s", l.ImportPath, err, bytes.TrimSpace(out))
	}
	return binary{path: path, dir: l.Dir, pkg: l.ImportPath}, nil
}
