package reset

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// everybodys makes a directory that everybody may write to.
func everybodys(t *testing.T, path string) {
	t.Helper()
	check(t, os.MkdirAll(path, 0o755))
	check(t, os.Chmod(path, 0o777|fs.ModeSticky))
}

// What the user owns where everybody may write is found and deleted, and nothing else. To him belongs all that this makes.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	p := Plan{User: "runner", UID: os.Getuid(), Root: t.TempDir(), Empty: []Dir{{Path: "/var/tmp"}}}
	p.Empty[0].Path = p.at("/var/tmp")
	for _, dir := range []string{
		"/run/lock", "/run/lock/mine", "/var/crash", "/var/lib/php/sessions", "/dev/mqueue", "/var/tmp", "/opt/cache", "/var/a/b/c/deep",
		"/var/lib/docker/overlay", "/run/user/1", "/elsewhere",
	} {
		everybodys(t, p.at(dir))
	}
	check(t, os.Symlink(p.at("/elsewhere"), p.at("/var/lock")))
	check(t, os.Symlink(p.at("/elsewhere"), p.at("/run/lock/link")))
	mine := []string{"/dev/mqueue/q", "/run/lock/a\nb", "/run/lock/link", "/run/lock/mine", "/var/crash/core", "/var/lib/php/sessions/x"}
	stay := []string{"/opt/cache/x", "/var/a/b/c/deep/x", "/var/lib/docker/overlay/x", "/var/tmp/x", "/run/x", "/elsewhere/x", "/run/user/1/x"}
	for _, path := range slices.Concat(mine, []string{"/run/lock/mine/deep/file"}, stay) {
		if path != "/run/lock/link" && path != "/run/lock/mine" {
			put(t, p.at(path), "x")
		}
	}
	runtime := "/run/user/" + strconv.Itoa(p.UID)
	check(t, os.MkdirAll(p.at(runtime), 0o700))
	mine = append(mine, runtime)
	slices.Sort(mine)

	var found []string
	check(t, p.leftovers(func(path string) error {
		rest, err := filepath.Rel(p.Root, path)
		found = append(found, "/"+rest)
		return err
	}))
	slices.Sort(found)
	equal(t, "found", mine, found)
	d := &Findings{}
	p.checkLeftovers(d)
	equal(t, "findings", len(mine), len(d.All))

	check(t, p.removeLeftovers())
	d = &Findings{}
	p.checkLeftovers(d)
	equal(t, "findings after", []string(nil), d.All)
	for _, path := range stay {
		if _, err := os.Lstat(p.at(path)); err != nil {
			t.Errorf("%s was deleted: %v", path, err)
		}
	}

	p.UID = 1001 // who owns nothing here
	put(t, p.at("/run/lock/x"), "x")
	check(t, p.removeLeftovers())
	if _, err := os.Lstat(p.at("/run/lock/x")); err != nil && os.Getuid() != p.UID {
		t.Errorf("another's file was deleted: %v", err)
	}
}

// A look ends soon, however much there is.
func TestLeftoversAreBounded(t *testing.T) {
	t.Parallel()
	p := Plan{User: "runner", UID: os.Getuid(), Root: t.TempDir()}
	everybodys(t, p.at("/run/lock"))
	for i := range 100 {
		put(t, p.at("/run/lock/"+strconv.Itoa(i)), "x")
	}
	d := &Findings{}
	p.checkLeftovers(d)
	if len(d.All) != maxFindings || d.More != 1 {
		t.Errorf("%d findings and %d more", len(d.All), d.More)
	}
}
