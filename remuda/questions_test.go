package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/cli"
	pages "github.com/remuda-ci/remuda/internal/page"
)

var (
	inTable = regexp.MustCompile("`(remuda [^`]+)`")
	metrics = regexp.MustCompile("`(remuda_[a-z_]+)`")
)

// question is a row of the table in docs/operations.md.
type question struct{ asked, command, rpc, page, metric string }

// questions are all rows. The question has no link, and the command no quotes.
func questions(t *testing.T) (all []question) {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../docs/operations.md"), "## Questions of a day")
	table, _, ends := strings.Cut(text, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no questions")
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "-") || strings.Contains(row, "| RPC |") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		asked, _, _ := strings.Cut(cells[0], " [")
		all = append(all, question{asked, strings.Trim(cells[1], "`"), cells[2], cells[3], cells[4]})
	}
	return all
}

// fewestQuestions is how many questions a day has, at least.
const fewestQuestions = 20

// TestQuestionsOfADay: each question of docs/operations.md is answered by its command, by its RPC and by its part of the page, and the answer is the
// same. The command and the RPC are asked in a world of their own each, so that of an order either has the same effect on what the page shows.
func TestQuestionsOfADay(t *testing.T) {
	t.Parallel()
	all, asked := questions(t), map[string]bool{}
	for _, q := range all {
		asked[q.asked] = true
		t.Run(q.asked, func(t *testing.T) {
			t.Parallel()
			a, known := answers[q.asked]
			if !known {
				t.Fatal("no answer is known to the test")
			}
			if got := partOf(a.path); got != q.page {
				t.Errorf("%s is the part %q of the page, not %q", a.path, got, q.page)
			}
			understood(t, q.command)
			byCommand, byRPC := newDay(t), newDay(t)
			said, got := byCommand.asks(q, a)
			wants(t, "the command", said, a.same, a.command)
			wants(t, "the page after the command", got, a.same, a.page)
			said, got = byRPC.calls(q, a)
			wants(t, "the RPC", said, a.same, a.message)
			wants(t, "the page after the RPC", got, a.same, a.page)
		})
	}
	for one := range answers {
		if !asked[one] {
			t.Errorf("the page does not ask %q", one)
		}
	}
	if len(all) < fewestQuestions {
		t.Errorf("%d questions were found", len(all))
	}
}

// partOf is the part of the page that is at a path; empty: there is none.
func partOf(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, pages.Path), "?")
	first, _, below := strings.Cut(path, "/")
	switch {
	case path == "":
		return "Now"
	case below:
		return "a " + first // a run or a host
	}
	for _, part := range pages.Menu {
		if strings.ToLower(part) == path {
			return part
		}
	}
	return ""
}

func wants(t *testing.T, what, text string, same []string, own string) {
	t.Helper()
	for _, part := range append(slices.Clone(same), own) {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// TestMetricsOfQuestions: each metric that the table names is one that there is.
func TestMetricsOfQuestions(t *testing.T) {
	t.Parallel()
	page, found := read(t, "../docs/metrics.md"), 0
	for _, q := range questions(t) {
		for _, m := range metrics.FindAllStringSubmatch(q.metric, -1) {
			if found++; !strings.Contains(page, "### `"+m[1]+"`\n") {
				t.Errorf("there is no metric %s", m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d metrics were found", found)
	}
}

// TestTroubleshooting: the page names codes, metrics and commands that there are.
func TestTroubleshooting(t *testing.T) {
	text, page, interfaces := read(t, "../docs/troubleshooting.md"), read(t, "../docs/metrics.md"), read(t, "../docs/interfaces.md")
	commands, codes := inTable.FindAllStringSubmatch(text, -1), 0
	for _, m := range commands {
		if m[1] != "remuda why" { // of what, the sentence says
			understood(t, m[1])
		}
	}
	for _, m := range metrics.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "### `"+m[1]+"`\n") {
			t.Errorf("there is no metric %s", m[1])
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|").FindAllStringSubmatch(text, -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			if codes++; !strings.Contains(interfaces, code) {
				t.Errorf("there is no code %s", code)
			}
		}
	}
	if len(commands) < 8 || codes < 30 {
		t.Errorf("%d commands and %d codes were found", len(commands), codes)
	}
}

// understood checks a command line as cobra does before it runs one.
func understood(t *testing.T, line string) {
	t.Helper()
	command, rest, err := newRoot(&cli.App{}).Find(wordsOf(line)[1:])
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	if err != nil || !command.Runnable() {
		t.Errorf("%s: %v", line, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
