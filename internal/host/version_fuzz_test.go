package host

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRunnerVersion: a job can write the manifest. Whatever is in it, what
// comes of it is a version or nothing.
func FuzzRunnerVersion(f *testing.F) {
	f.Add([]byte(`{"libraries": {"Runner.Listener/2.330.0": {"type": "project"}}}`))
	f.Add([]byte(`{"libraries": {"Runner.Listener/2.330.0\n": {}, "Runner.Listener/": null}}`))
	f.Add([]byte(`{"libraries": null}`))
	path := filepath.Join(f.TempDir(), "manifest")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runnerVersion(path); got != "" && !versionFormat.MatchString(got) {
			t.Errorf("version %q of %q", got, text)
		}
	})
}
