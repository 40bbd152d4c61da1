//go:build testhost

package host_test

import (
	"regexp"
	"strings"

	"github.com/remuda-ci/remuda/internal/local"
)

// storeDir is where a machine has its caches.
const storeDir = "/var/lib/remuda/caches"

// listStore prints what is in the store of caches: the kind, mode, owner, size, time and path of all, and the SHA-256 of each file. The time of current
// is left out: it is that of the last use. It fails if a layer differs from its list, or is newer than the commit that names it.
const listStore = `cd ` + storeDir + `
find . -mindepth 1 ! -path './*/current' -printf '%y %m %U %G %s %T@ %p %l\n' | sort -k 7
find . -path './*/current' -printf '%y %m %U %G %s - %p\n' | sort -k 7
find . -type f -print0 | sort -z | xargs -0r sha256sum
for list in */*.list; do
	{ grep '^f ' "$list" || true; } | sed 's/^f [0-7]* [0-9]* \([0-9a-f]*\) "\(.*\)"$/\1  \2/' >/run/sums
	if [ -s /run/sums ]; then ( cd "${list%.list}"; sha256sum --quiet -c /run/sums ); fi
done
for key in */current; do
	newer=$(find "${key%/current}" -mindepth 1 -newer "$key")
	if [ -n "$newer" ]; then echo "after the commit came $newer" >&2; exit 1; fi
done`

func (i *instance) store() string {
	i.t.Helper()
	return i.sh(listStore)
}

// ofCommits are the lines of a listing that a commit changes which adds nothing.
var ofCommits = regexp.MustCompile(`(?m)^.* \./[0-9a-f]{16}(/current)?\s*$\n`)

// stored compares the store with what it was before an attack that leaves nothing.
func (s *stage) stored(i *instance, before string, attack cacheAttack) {
	s.Helper()
	after := i.store()
	if attack.refused {
		before, after = ofCommits.ReplaceAllString(before, ""), ofCommits.ReplaceAllString(after, "")
	}
	if attack.keepsNothing() && before != after {
		s.Errorf("the store is\n%s\nand was\n%s\nThe clean-up said:\n%s", after, before, i.words("remuda-clean"))
	}
}

// listViews prints what a job sees of its caches, without the times of directories: some are made with the view.
const listViews = `( cd; for dir in go/pkg/mod hostedtoolcache actionarchivecache; do
find "$dir" -mindepth 1 \( -type d -printf '%y %m %u %s - %p\n' -o -printf '%y %m %u %s %T@ %p %l\n' \) | sort -k 6; find "$dir" -type f -print0 | sort -z | xargs -0r sha256sum
done )`

// untilListed is the listing in the output of a job.
func untilListed(output string) string {
	listing, _, _ := strings.Cut(output, "listed")
	return strings.TrimSpace(listing)
}

// guess looks for the cache that acme/shop has on the same host. No answer may differ from that for a cache which is not there.
const guess = `set +e; key=$(printf 'acme/shop\0go' | sha256sum | cut -c1-16); none=0123456789abcdef
lower=$(` + ofMounts + ` | grep -m 1 ` + storeDir + `)
test -n "$lower" || exit 1
cat >/dev/shm/look.sh <<'end'
for store in "$1" /proc/[0-9]*/root"$1" /proc/self/root"$1" "$3"/.. "$3"/../.. "$3"/../../.. "$3"/../../../.. /proc/[0-9]*/cwd /proc/[0-9]*/fd/*; do
	for at in "$store/$2" "$store/$2/current" "$store/view.json"; do
		stat "$at" && echo "` + broken + ` see $at"
		cat "$at" && echo "` + broken + ` read $at"
		ls "$at" && echo "` + broken + ` list $at"
	done
	ls "$store"/$2/*/0 && echo "` + broken + ` list the layers in $store"
	find "$store" -maxdepth 6 -name '*planted*' 2>/dev/null | grep . && echo "` + broken + ` find the file in $store"
done 2>/dev/null
mkdir -p /dev/shm/upper /dev/shm/work /dev/shm/merged
mount --bind "$1/$2" /dev/shm/merged 2>/dev/null && echo "` + broken + ` mount it"
mount -t overlay -o lowerdir="$1/$2",upperdir=/dev/shm/upper,workdir=/dev/shm/work none /dev/shm/merged 2>/dev/null && echo "` + broken + ` stack it"
true
end
bash /dev/shm/look.sh ` + storeDir + ` "$key" "$lower"
if unshare -Urm true; then unshare -Urm bash /dev/shm/look.sh ` + storeDir + ` "$key" "$lower"; fi
for at in "" /current /0; do for what in stat cat ls cd; do
	there=$($what "` + storeDir + `/$key$at" 2>&1); not=$($what "` + storeDir + `/$none$at" 2>&1)
	[ "${there//$key/}" = "${not//$none/}" ] || echo '` + broken + ` tell whether it is there'
done; done
grep -qs "$key" /proc/[0-9]*/mountinfo /proc/[0-9]*/environ && echo '` + broken + ` read its name of a process'
grep -rqs -D skip -e "$key" /run /var/log /var/tmp /etc /opt /var/lib/remuda && echo '` + broken + ` read its name in a file'
journalctl --no-pager 2>/dev/null | grep -q "$key" && echo '` + broken + ` read its name in the journal'
ls -A ~/go/pkg/mod | grep -qvx own && echo '` + broken + ` see files in its own view'
echo own >~/go/pkg/mod/own`

// cacheGuessed has a repository look for the cache of another one that has left it on the same host, by what is known of both, and the other one find it as it was.
func (s *stage) cacheGuessed() {
	s.Helper()
	other := s.of("acme/other")
	i := s.provision("991", "shared")
	s.begin("991", job{"plant", "echo " + trusted + " >" + cached + "/planted"})
	s.succeeds("991", "plant")
	s.pooled(i, "991")
	before := i.store()
	for n, from := range []local.Origin{{}, ofFork} {
		runID := []string{"992", "993"}[n]
		other.takesBackFrom("shared", i, runID)
		other.beginFrom(runID, from, job{"guess", guess + "\necho \"" + harmed + "\""})
		j := other.over(runID, "guess")
		if log := afterScript(j.Log); !strings.Contains(log, harmed) || strings.Contains(log, broken) {
			s.Fatalf("the job came out as %q:\n%s", j.Conclusion, log)
		}
		other.pooled(i, runID)
	}
	if after := i.store(); !containsLines(after, before) {
		s.Errorf("the store is\n%s\nand was\n%s", after, before)
	}
	s.takesBackFrom("shared", i, "994")
	s.begin("994", job{"look", "cat " + cached + "/planted; ls " + cached + "; echo looked"})
	found, _, _ := strings.Cut(s.succeeds("994", "look"), "looked")
	if found = strings.Join(strings.Fields(found), " "); found != trusted+" planted" {
		s.Errorf("the next run of the repository found %q", found)
	}
	s.pooled(i, "994")
}

// containsLines reports whether a text has all lines of another one.
func containsLines(text, lines string) bool {
	for line := range strings.Lines(lines) {
		if !strings.Contains(text, line) {
			return false
		}
	}
	return true
}

// pooled releases a run, whose host must come back.
func (s *stage) pooled(i *instance, runID string) {
	s.Helper()
	if s.release(runID).GetPooledCount() != 1 {
		s.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
}
