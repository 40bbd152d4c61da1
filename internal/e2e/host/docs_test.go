//go:build testhost

package host_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is what operators read.
const page = "../../../docs/operations.md"

// shown is what a host showed, for the blocks of the page: each follows a
// comment <!-- test-host: NAME -->, and is compared with what was seen under
// that name, times and ids set aside.
type shown struct{ seen map[string]string }

func newShown() *shown { return &shown{map[string]string{}} }

// see keeps what was printed under a name.
func (s *shown) see(name, text string) { s.seen[name] = normal(text) }

// block is one in the page: the comment, and the fence after it.
var block = regexp.MustCompile("(?s)(<!-- test-host: ([a-z-]+) -->\n```text\n)(.*?)(```\n)")

// compare reports where the page shows something else, or writes it anew.
func (s *shown) compare(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(page)
	check(t, err)
	named := map[string]bool{}
	want := block.ReplaceAllStringFunc(string(text), func(all string) string {
		parts := block.FindStringSubmatch(all)
		named[parts[2]] = true
		seen, ok := s.seen[parts[2]]
		if !ok {
			t.Errorf("%s shows %q, which no test has seen", page, parts[2])
			return all
		}
		return parts[1] + seen + parts[4]
	})
	for name := range s.seen {
		if !named[name] {
			t.Errorf("%s does not show %q:\n%s", page, name, s.seen[name])
		}
	}
	if *update {
		check(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s shows something else than a host (-page +host); -update writes it anew:\n%s", page, diff)
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
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d{4})`), "2026-01-02T03:04:05+0000"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; .*? ago`), "Fri 2026-01-02 03:04:05 UTC; 12min ago"},
	{regexp.MustCompile(`\b(\d+h )?\d+m( \d+s)? left`), "5h 48m left"},
	{regexp.MustCompile(`\b1m( \d+s)?; `), "1m 45s; "},
	{regexp.MustCompile(`(Tasks|Memory|CPU|IO|IP): .*`), "$1: …"},
	{regexp.MustCompile(`(Main PID:|Process:) \d+`), "$1 412"},
	{regexp.MustCompile(`[├└]─ *\d+ `), "└─412 "},
	{regexp.MustCompile(`\[\d+\]:`), "[412]:"},
	{regexp.MustCompile(`\brt\d+x\d+\b`), "ip-10-0-0-7"},
	{regexp.MustCompile(`10\.213\.0\.1:\d+`), "github.example.com"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|s)\b`), "1.2s"},
}

// normal is a text with its times, ids and sizes replaced, without spaces at
// the ends of lines.
func normal(text string) string {
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); !strings.HasSuffix(line, ": …") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}
