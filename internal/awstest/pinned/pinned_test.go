package pinned_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

// module is a directory with a script and a file that pins, and makes a directory in it the working directory.
func module(t *testing.T, script string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module x\n", "install": script, "pins": "1\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	return root
}

func TestInstall(t *testing.T) {
	root := module(t, "#!/bin/sh\necho progress >&2\necho /the/tools\n")
	got, err := pinned.Tools{Script: "install", Files: []string{"pins"}}.Install()
	if want := (pinned.Installed{Dir: "/the/tools", Root: root}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestFailures(t *testing.T) {
	module(t, "#!/bin/sh\necho no network >&2\nexit 1\n")
	if _, err := (pinned.Tools{Script: "install"}).Install(); err == nil || !strings.Contains(err.Error(), "run install: exit status 1\nno network") {
		t.Errorf("a script that fails: %v", err)
	}
	for _, tools := range []pinned.Tools{{Script: "install", Files: []string{"pins", "others"}}, {Script: "others"}} {
		if _, err := tools.Install(); !os.IsNotExist(err) {
			t.Errorf("%+v: %v", tools, err)
		}
	}
}
