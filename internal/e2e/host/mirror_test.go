//go:build testhost

package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/gittest"
)

// TestMirrorOfARepository: the clean-up after a trusted run fetches its branch with a token of the App, as root, and the jobs of the next run, as another
// user, read its objects and can change none. Runs that may not write leave the mirror as it is.
func TestMirrorOfARepository(t *testing.T) {
	t.Parallel()
	server := t.TempDir()
	check(t, os.Chmod(server, 0o755))
	bare := filepath.Join(server, repository+".git")
	git := func(args ...string) string {
		t.Helper()
		return gittest.Run(t, server, args...)
	}
	git("init", "-q", "--bare", bare)
	commit := func() string {
		t.Helper()
		sha := git("--git-dir="+bare, "commit-tree", "-m", "a commit", "4b825dc642cb6eb9a060e54bf8d69288fbee4904") // of the empty tree
		git("--git-dir="+bare, "update-ref", "refs/heads/main", sha)
		return sha
	}
	git("--git-dir="+bare, "hash-object", "-w", "-t", "tree", "/dev/null")
	sha := commit()

	s := newStageOfApp(t, func(_ types.Instance, m *system) { m.hasVolume(t) })
	check(t, s.github.ServeGit(s.ctx, server))
	const hasNone = "git init -q w && test ! -e w/.git/objects/info/alternates\n"
	i := s.provision("800", "mirroring")
	s.begin("800", job{"use", hasNone})
	s.succeeds("800", "use")
	if s.release("800").GetPooledCount() != 1 {
		t.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
	s.takesBackFrom("mirroring", i, "801")
	s.begin("801", job{"use", "git init -q w && cd w && git cat-file -p " + sha + `
env -i PATH="$PATH" git cat-file -t ` + sha + `
git fsck && cd ..
for f in $(find ~/gitmirror); do ! test -w "$f" || { echo "can write to $f"; exit 1; }; done
! rm -rf ~/gitmirror/objects 2>/dev/null || exit 1
! grep -rs ghs_ ~/gitmirror /var/lib/remuda || exit 1
git init -q v && git -C v cat-file -t ` + sha + "\n"})
	if log := s.succeeds("801", "use"); !strings.Contains(log, "a commit") || strings.Count(log, "commit\n") < 2 {
		t.Errorf("the job says:\n%s\nthe clean-up said:\n%s", log, i.words("remuda-clean"))
	}
	if s.release("801").GetPooledCount() != 1 {
		t.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
	if words := i.lastJournal(); strings.Contains(words, "ghs_") {
		t.Error("the journal has a token")
	}
}
