package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/contexts"
	"github.com/remuda-ci/remuda/internal/cli/failure"
)

func TestPath(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string
	}{
		"home":                    {map[string]string{"HOME": "/home/a"}, "/home/a/.config/remuda/config.yaml"},
		"XDG":                     {map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/x"}, "/x/remuda/config.yaml"},
		"a file of its own":       {map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/x", "REMUDA_CONFIG": "c.yaml"}, "c.yaml"},
		"nothing":                 {nil, ""},
		"XDG that is not a place": {map[string]string{"XDG_CONFIG_HOME": "x"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := contexts.Path(func(name string) string { return test.env[name] })
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "config.yaml")
	file, err := contexts.Load(path)
	if err != nil || len(file.Contexts) != 0 {
		t.Fatalf("a file that does not exist: %+v, %v", file, err)
	}
	file.Put(contexts.Context{Name: "dev", Target: connect.Target{Address: "127.0.0.1:7443"}})
	file.Put(contexts.Context{Name: "prod", Target: connect.Target{Address: "controld.acme.com:7443", CAFile: "/ca.pem", CertFile: "/a.crt", KeyFile: "/a.key"}})
	if err := file.Save(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := contexts.Load(path)
	if diff := cmp.Diff(file, got); err != nil || diff != "" {
		t.Errorf("%v (-saved +loaded):\n%s", err, diff)
	}
	if c, found, err := got.Find(""); c.Name != "prod" || !found || err != nil {
		t.Errorf("the current one is %+v, %v, %v", c, found, err)
	}
}

func TestFind(t *testing.T) {
	var file contexts.File
	if _, found, err := file.Find(""); found || err != nil {
		t.Errorf("none: %v, %v", found, err)
	}
	file.Put(contexts.Context{Name: "dev"})
	file.Put(contexts.Context{Name: "prod"})
	if _, _, err := file.Find("nix"); failure.CodeOf(err) != failure.NotFound {
		t.Errorf("no such: %v", err)
	}
	if err := file.Use("dev"); err != nil || file.Current != "dev" {
		t.Errorf("use: %v, %s", err, file.Current)
	}
	if err := file.Delete("dev"); err != nil || file.Current != "" || len(file.Contexts) != 1 {
		t.Errorf("delete: %v, %+v", err, file)
	}
	for _, err := range []error{file.Use("dev"), file.Delete("dev")} {
		if failure.CodeOf(err) != failure.NotFound {
			t.Errorf("a context that is gone: %v", err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"a file that a group can read": {"contexts: []", 0o640, "other users can read"},
		"a file that all can write":    {"contexts: []", 0o602, "other users can read"},
		"an unknown key":               {"contexts: [{name: a, address: 'h:1', password: x}]", 0o600, "password"},
		"a name that is there twice":   {"contexts: [{name: a, address: 'h:1'}, {name: a, address: 'h:1'}]", 0o600, "twice"},
		"a name that is no name":       {"contexts: [{name: 'a b', address: 'h:1'}]", 0o600, "cannot be the name"},
		"no address":                   {"contexts: [{name: a}]", 0o600, "HOST:PORT"},
		"a certificate without a key":  {"contexts: [{name: a, address: 'h:1', cert_file: /c}]", 0o600, "key"},
		"two ways to show who one is":  {"contexts: [{name: a, address: 'h:1', cert_file: /c, key_file: /k, token_file: /t}]", 0o600, "not both"},
		"no YAML":                      {"contexts: [", 0o600, "yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := contexts.Load(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
