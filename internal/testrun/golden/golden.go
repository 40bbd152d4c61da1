// Package golden compares files of the repository with what tests render.
package golden

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// File compares a file with what it should be, made of what it was. With update it writes the file.
func File(t testing.TB, path string, update bool, render func(before string) string) {
	t.Helper()
	have, err := os.ReadFile(path)
	if err != nil && !update {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	want := render(string(have))
	if update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s differs; look at it after go test -update (-have +want):\n%s", path, diff)
	}
}
