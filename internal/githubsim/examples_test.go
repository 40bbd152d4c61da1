package githubsim_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "workflows", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startExample starts a run of the file with the given id, so that its hosts can be there first.
func (s *standin) startExample(id int64, workflow string) {
	s.t.Helper()
	s.call(201, "POST", "/_standin/runs", map[string]any{"repository": "acme/app", "run_id": id, "workflow": workflow}, nil)
}

func TestExampleMatrix(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c"} {
		s.online(name, "77,78")
	}
	for _, run := range []struct {
		id   int64
		says string
	}{{77, "work directory clean"}, {78, "found leftover: run 77"}} {
		s.startExample(run.id, example(t, "matrix.yml"))
		v := s.completed(run.id)
		used := map[string]bool{}
		for _, j := range v.Jobs {
			if j.conclusion() != "success" {
				t.Fatalf("%s: %s\n%s", j.Name, j.conclusion(), j.Log)
			}
		}
		for _, j := range v.Jobs[:3] {
			used[*j.Runner] = true
			if !strings.Contains(j.Log, run.says) || !strings.Contains(j.Log, "running 200 acceptance cases of") {
				t.Errorf("run %d, %s: %s", run.id, j.Name, j.Log)
			}
		}
		if len(used) != 3 || v.Jobs[0].Name != "parser (shard 1 of 3)" {
			t.Errorf("run %d: %s and others on %v", run.id, v.Jobs[0].Name, used)
		}
	}
}

func TestExampleGoBuild(t *testing.T) {
	source, err := filepath.Abs("../../examples/hello")
	if err != nil {
		t.Fatal(err)
	}
	// Another program builds what is there: go test must see it too, or it would
	// reuse a result of other code.
	if err := filepath.WalkDir(source, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t)
	defer func() { s.t = t }()
	// One after the other, so that the second uses what the first has compiled.
	for i, tc := range []struct{ name, env string }{
		{"written by the workflow", "EXAMPLE_SOURCE="}, {"from a directory", "EXAMPLE_SOURCE=" + source},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.t = t
			id := int64(77 + i)
			s.online(fmt.Sprint("host-", id), fmt.Sprint(id), "HOME=", "GOCACHE="+strings.TrimSpace(string(cache)), tc.env)
			s.startExample(id, example(t, "go-build.yml"))
			j := s.completed(id).Jobs[0]
			if j.conclusion() != "success" || !strings.Contains(j.Log, "Hello, acme/app!") || !strings.Contains(j.Log, "ok  \texample.com/hello/greet") {
				t.Errorf("%s: %s", j.conclusion(), j.Log)
			}
		})
	}
}
