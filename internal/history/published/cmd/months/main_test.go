package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/published"
)

const days = `{"job_id": 1, "run_id": 4, "status": "completed", "runner_name": "a", "labels": ["made-up"],` +
	` "created_at": "2026-04-23T09:00:00Z", "started_at": "2026-04-23T09:00:30Z", "completed_at": "2026-04-23T09:05:00Z"}
{"job_id": 2, "run_id": 4, "status": "queued", "runner_name": "", "created_at": "2026-04-23T09:00:00Z"}
`

// TestWrite: the CSV is one that the planner reads, a failure leaves the one from before, and nothing else is in the directory.
func TestWrite(t *testing.T) {
	t.Parallel()
	from, into := t.TempDir(), t.TempDir()
	sum := sha256.Sum256([]byte(days))
	r := published.Record{
		Name: "made-up", Repository: "acme/ci-days", Commit: "0", Convert: published.IREE().Convert,
		Files: []published.File{{Path: "a", Size: int64(len(days)), SHA256: hex.EncodeToString(sum[:])}},
	}
	source, path := filepath.Join(from, "acme", "ci-days", "0", "a"), filepath.Join(into, "made-up.csv")
	if err := errors.Join(os.MkdirAll(filepath.Dir(source), 0o755), os.WriteFile(source, []byte(days), 0o644)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	say := func(line string) { lines = append(lines, line) }
	if err := write(t.Context(), r, published.Directory(from), into, say); err != nil {
		t.Fatal(err)
	}
	h, err := history.Load(path, nil)
	if err != nil || len(h.Jobs) != 1 || h.Jobs[0].Labels[0] != "made-up" {
		t.Errorf("%+v, %v", h, err)
	}
	want := []string{
		"made-up: file 1 of 1: a of acme/ci-days, 1 KiB", "made-up: 1 jobs in " + path, "made-up: left out: 1 that had no end when they were last read",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(source, []byte(days+days), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), r, published.Directory(from), into, say); err == nil {
		t.Error("a file that is another one was taken")
	}
	if again, err := history.Load(path, nil); err != nil || cmp.Diff(h, again) != "" {
		t.Errorf("after a failure: %+v, %v", again, err)
	}
	if entries, err := os.ReadDir(into); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := os.WriteFile(source, []byte(days), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), r, published.Directory(from), filepath.Join(into, "none"), say); err == nil || !strings.HasPrefix(err.Error(), "write ") {
		t.Errorf("into a directory that is not there: %v", err)
	}
}

// TestRun: names are those of records, and one record that fails does not keep the others away.
func TestRun(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"bitcoin-mouth"}, io.Discard)
	if want := `there is no record "bitcoin-mouth"; there are bitcoin-month, openstates-month, iree-days`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if err := run(t.Context(), []string{"-form", "x"}, io.Discard); err == nil {
		t.Error("a flag that is not known was taken")
	}
	into := t.TempDir()
	err = run(t.Context(), []string{"-from", t.TempDir(), "-into", into}, io.Discard)
	if err == nil || strings.Count(err.Error(), "there is no such file") != len(published.Records()) {
		t.Errorf("the error is %v, want one for each record", err)
	}
	err = run(t.Context(), []string{"-from", t.TempDir(), "-into", into, "iree-days"}, io.Discard)
	if err == nil || strings.Count(err.Error(), "there is no such file") != 1 {
		t.Errorf("the error is %v, want one", err)
	}
}
