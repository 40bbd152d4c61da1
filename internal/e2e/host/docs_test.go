//go:build testhost

package host_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages are what operators read of a host, and the rest of what it shows.
var pages = []string{"../../../docs/operations.md", "testdata/transcripts.md"}

// shown is what a host showed, for the blocks of the pages: each follows a
// comment <!-- test-host: NAME -->, and is compared with what was seen under
// that name, times and ids set aside. The names of those of the tests of a host's
// end begin with end-, and the others are TestLife's.
type shown struct {
	ends bool
	mu   sync.Mutex
	seen map[string]string
}

func newShown(ends bool) *shown { return &shown{ends: ends, seen: map[string]string{}} }

// see keeps what was printed under a name.
func (s *shown) see(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = normal(text)
}

// pageLock is held by the test that compares, and may write.
var pageLock sync.Mutex

// block is one in a page: the comment, and the fence after it.
var block = regexp.MustCompile("(?s)(<!-- test-host: ([a-z-]+) -->\n```text\n)(.*?)(```\n)")

// compare reports where the pages show something else, or writes them again.
func (s *shown) compare(t testing.TB) {
	t.Helper()
	pageLock.Lock()
	defer pageLock.Unlock()
	named := map[string]bool{}
	for _, page := range pages {
		s.comparePage(t, page, named)
	}
	for name := range s.seen {
		if !named[name] {
			t.Errorf("no page shows %q:\n%s", name, s.seen[name])
		}
	}
}

// comparePage compares one page, and adds the names of its blocks to named.
func (s *shown) comparePage(t testing.TB, page string, named map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	check(t, err)
	want := block.ReplaceAllStringFunc(string(text), func(all string) string {
		parts := block.FindStringSubmatch(all)
		if strings.HasPrefix(parts[2], "end-") != s.ends {
			return all
		}
		named[parts[2]] = true
		seen, ok := s.seen[parts[2]]
		if !ok {
			t.Errorf("%s shows %q, which no test has seen", page, parts[2])
			return all
		}
		if alike(parts[3], seen) {
			return all
		}
		return parts[1] + seen + parts[4]
	})
	if *update {
		check(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s shows something else than a host (-page +host); -update writes it again:\n%s", page, diff)
	}
}

// replacements make what was printed once into what is always printed. They are
// values that look like real ones.
var replacements = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\bi-[0-9a-f]{17}\b`), "i-0123456789abcdef0"},
	{regexp.MustCompile(`\bAROA[A-Z0-9]{16,17}\b`), "AROA0123456789ABCDEF"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d{4})`), "2026-01-02T03:04:05.678Z"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC`), "2026-01-02 03:06:05 +0000 UTC"},
	{regexp.MustCompile(`\b[A-Z][a-z][a-z] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; .*? ago`), "Fri 2026-01-02 03:04:05 UTC; 12min ago"},
	{regexp.MustCompile(`\b1h 5\dm left`), "1h 59m left"},
	{regexp.MustCompile(`([^h]) 5\dm left`), "$1 59m left"},
	{regexp.MustCompile(`\b1m( \d+s)?; `), "1m 50s; "},
	{regexp.MustCompile(`\btype=[a-z0-9-]+\.large zone=`), "type=m7i.large zone="},
	{regexp.MustCompile(`\bzone=us-east-1[a-f] type=[a-z0-9-]+\.large`), "zone=us-east-1a type=m7i.large"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "0b6c1f0e-5d0a-4e8e-9f57-3c1d2a4b5c6d"},
	{regexp.MustCompile(` version=\d+\n`), "\n"},
	{regexp.MustCompile(`\bno record of this host for \d+s`), "no record of this host for 3s"},
	{regexp.MustCompile(`(Main PID:|Process:) \d+`), "$1 412"},
	{regexp.MustCompile(`([├└]─) *\d+ `), "${1}412 "},
	{regexp.MustCompile(`--since=@\d+\.\d+`), "--since=@1767323045.678000"},
	{regexp.MustCompile(`Loaded: loaded \(/usr/lib/`), "Loaded: loaded (/lib/"}, // newer systems have no other /lib
}

// unsteady are lines that may be there or not. A listener whose registration was deleted may end before it is stopped. The last are said when
// systemd goes before agentd. The drop-in is there with systemd 254 and newer.
var unsteady = regexp.MustCompile(`^ *(Tasks|Memory|CPU|IO|IP|Drop-In): |^ *└─restart-steps\.conf|sleep 0\.1$|reported: .* signal= |context canceled` +
	`|effect=stop reason="released, and no job runs"|cannot observe the host: .*connect to systemd|sd_notify failed|stopped by a signal`)

// shell is a shell in a tree of processes. A second one is the first that has forked, before the exec.
var shell = regexp.MustCompile(`─412 bash -e .*$`)

// normal is a text with its times and ids replaced, each record and each shell told
// once, and without spaces at the ends of lines.
func normal(text string) string {
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		again := strings.Contains(line, "agentd.agent: record changed: ") && slices.Contains(lines, line)
		if forked := shell.FindString(line); forked != "" {
			again = slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, forked) })
		}
		if !unsteady.MatchString(line) && !again {
			lines = append(lines, line)
		}
	}
	for n, line := range lines { // the last of a tree may have gone
		if last := n+1 == len(lines) || !strings.Contains(lines[n+1], "─412 "); last {
			lines[n] = strings.Replace(line, "├─412", "└─412", 1)
		} else {
			lines[n] = strings.Replace(line, "└─412", "├─412", 1)
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// alike texts have the same lines: lines about the same moment may come in
// any order.
func alike(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.Lines(a)), slices.Sorted(strings.Lines(b)))
}

// TestNormal: a shell that has forked and a sleep that comes and goes make no
// difference to what is compared.
func TestNormal(t *testing.T) {
	t.Parallel()
	const quiet = `├─412 Runner.Worker
├─412 bash -e /work/_temp/job.sh
└─412 lurker 100000
`
	const busy = `├─501 Runner.Worker
├─502 bash -e /work/_temp/job.sh
├─503 lurker 100000
├─504 sleep 0.1
└─505 bash -e /work/_temp/job.sh
`
	if diff := cmp.Diff(quiet, normal(busy)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
