package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/performance.md"

// TestThePageHasTheShape: the page has each part as the program writes it, with a table of the part's columns or the reason why there is none.
func TestThePageHasTheShape(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if machine, ok := between(string(text), "machine"); !ok || !strings.Contains(machine, "Measured on ") {
		t.Error("the page does not say on what machine")
	}
	for _, p := range parts {
		got, ok := between(string(text), p.name)
		if !ok {
			t.Errorf("the page has no part %s", p.name)
			continue
		}
		want := p.render(figures{}, nil)
		head, _, _ := strings.Cut(want, noFigure)
		_, tail, _ := strings.Cut(want, "yet.\n\n")
		if !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
			t.Errorf("part %s: the sentences are not those of the program: measure it again\n%s", p.name, got)
		}
		middle := strings.TrimSuffix(strings.TrimPrefix(got, head), tail)
		switch rows, table := strings.CutPrefix(middle, p.head()); {
		case table && strings.Count(rows, "\n| ")+1 >= 1 && strings.HasPrefix(rows, "| "):
			if strings.Contains(rows, unexplained) {
				t.Errorf("part %s: a cost has no sentence in costs.txt:\n%s", p.name, rows)
			}
		case strings.HasPrefix(middle, noFigure) && len(middle) > len(noFigure)+10:
		default:
			t.Errorf("part %s has neither the table of the program nor the reason why:\n%s", p.name, middle)
		}
	}
}

func TestRender(t *testing.T) {
	out := `goos: linux
BenchmarkCallers/store=sqlite/callers=8-2  300  1 ns/op  990.0 claims/s  1.4 cpu-ms/op  3.3 p50-ms  19 p99-ms
BenchmarkCallers/store=sqlite/callers=8-2  300  1 ns/op  1010 claims/s  1.6 cpu-ms/op  3.1 p50-ms  21 p99-ms
BenchmarkCallers/store=sqlite/callers=8-2  300  1 ns/op  1000 claims/s  1.5 cpu-ms/op  3.2 p50-ms  20 p99-ms
BenchmarkLimitCommits/writes=13-2  300  1 ns/op  5000 commits/s  0.2 cpu-ms/op
BenchmarkLimitEcho/callers=8-2  300  1 ns/op  5000 calls/s  0.05 cpu-ms/op
PASS
`
	found, err := parse(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choose("callers")
	if err != nil {
		t.Fatal(err)
	}
	got := chosen[0].render(found, nil)
	const row = "| Callers/store=sqlite/callers=8 | 1000 ± 1 % | 1.50 ± 7 % | 3.20 ± 3 % | 20.0 ± 5 % | 0.30 ms | 20 % |\n"
	if !strings.Contains(got, row) || strings.Contains(got, "| Limit") {
		t.Errorf("got\n%s\nwant the row\n%s", got, row)
	}
	replaced, err := replace("a\n"+begins("callers")+"\nold\n"+ends("callers")+"\nb\n", "callers", got)
	if err != nil || strings.Contains(replaced, "old") || !strings.HasSuffix(replaced, ends("callers")+"\nb\n") {
		t.Errorf("got %q, %v", replaced, err)
	}
}

// TestRun: it says which page it wrote, and a name that is none gets all that there are.
func TestRun(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-text", "-page", path, "-parts", "start"}, &out); err != nil || out.String() != "wrote "+path+"\n" {
		t.Errorf("printed %q, %v; want the page", &out, err)
	}
	if written, err := os.ReadFile(path); err != nil || string(written) == string(text) {
		t.Errorf("the page is as before (%v)", err)
	}
	err = run(t.Context(), []string{"-page", path, "-parts", "callers,none"}, io.Discard)
	if want := `there is no part "none"; there are limits, callers, dynamodb, growth, `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	err = run(t.Context(), []string{"-page", path, "-parts", "beside"}, io.Discard)
	if want := "the part beside needs other tools: `ONLY='Warm|Cold' make peers` measures it"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// besideOutput is what benchmarks of peers print: three runs of one case, and one of another.
const besideOutput = `goos: linux
BenchmarkPeersWarm/hosts=10/delay=5ms/poll=1s-2  1  1 ns/op  84 peer-provision-calls  310 peer-provision-host-calls  1.25 peer-provision-s  10.0 peer-provision:sqs.DeleteMessage  8.0 remuda-provision:dynamodb.Query  33 remuda-provision-calls  12 remuda-provision-host-calls  0.60 remuda-provision-s
BenchmarkPeersWarm/hosts=10/delay=5ms/poll=1s-2  1  1 ns/op  84 peer-provision-calls  320 peer-provision-host-calls  1.30 peer-provision-s  10.0 peer-provision:sqs.DeleteMessage  35 remuda-provision-calls  14 remuda-provision-host-calls  0.66 remuda-provision-s
BenchmarkPeersWarm/hosts=10/delay=5ms/poll=1s-2  1  1 ns/op  84 peer-provision-calls  330 peer-provision-host-calls  1.35 peer-provision-s  10.0 peer-provision:sqs.DeleteMessage  34 remuda-provision-calls  13 remuda-provision-host-calls  0.65 remuda-provision-s
BenchmarkPeersScaleDown/runners=100/delay=5ms-2  1  1 ns/op  103 peer-scale-down-calls  203 peer-scale-down-github-calls  101 peer-scale-down-s  100 peer-scale-down:ec2.TerminateInstances  8 remuda-scale-down-calls  101 remuda-scale-down-github-calls  2 remuda-scale-down-s  1 remuda-scale-down:ec2.TerminateInstances
`

// TestBeside: a table has a row of each case, with medians, and how many times as long the other tool took.
func TestBeside(t *testing.T) {
	found, err := parse(strings.NewReader(besideOutput))
	if err != nil {
		t.Fatal(err)
	}
	for part, rows := range map[string][]string{
		"beside":         {"| warm, 10 | 5ms | 1s | 0.65 ± 5 % | 1.30 ± 4 % | 2.0 | 34 | 84 | 13 | 320 |\n"},
		"beside-release": {"| warm, 10 | 5ms | 1s | - | - | - | - | - | - | - |\n"},
		"beside-calls":   {"| `sqs.DeleteMessage` | 0 / 10 | 0 / 0 | 0 / 0 |\n"},
		"beside-scale-down": {
			"| time, s | 2.00 | 101 |\n", "| calls to GitHub | 101 | 203 |\n", "| calls to AWS | 8 | 103 |\n", "| `ec2.TerminateInstances` | 1 | 100 |\n",
		},
	} {
		chosen, err := choose(part)
		if err != nil {
			t.Fatal(err)
		}
		got := chosen[0].render(found, nil)
		for _, row := range rows {
			if !strings.Contains(got, row) {
				t.Errorf("part %s: got\n%s\nwant the row\n%s", part, got, row)
			}
		}
		if strings.Contains(got, "dynamodb.Query") {
			t.Errorf("part %s has a row of calls that only one run of three made:\n%s", part, got)
		}
		if lines := strings.Count(aligned(got), "\n"); lines != strings.Count(got, "\n| ")+strings.Count(got[:2], "| ") {
			t.Errorf("part %s: %d lines for a terminal of\n%s", part, lines, got)
		}
	}
	all, err := choose("")
	if err != nil || slices.ContainsFunc(all, func(p part) bool { return p.beside != nil }) {
		t.Errorf("a report without names measures other tools (%v)", err)
	}
}

// TestThePageNamesThePeers: the page says at which commits scripts/peers takes the other tools.
func TestThePageNamesThePeers(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../../scripts/peers")
	if err != nil {
		t.Fatal(err)
	}
	commits := regexp.MustCompile(`_commit=([0-9a-f]{40})\n`).FindAllStringSubmatch(string(script), -1)
	if len(commits) != 2 {
		t.Fatalf("scripts/peers pins %d commits, want 2", len(commits))
	}
	for _, c := range commits {
		if !strings.Contains(string(text), "/"+c[1]+")") {
			t.Errorf("the page does not link to %s", c[1])
		}
	}
}

func TestTopOf(t *testing.T) {
	top, err := topOf("Type: cpu\n      flat  flat%   sum%        cum   cum%\n     2.31s 21.09% 21.09%      2.31s 21.09%  runtime.memmove\n     1s 9.1% 30%   2s 18%  runtime.mallocgc (inline)\n")
	if err != nil || len(top.names) != 2 || top.values["runtime.memmove"]["%"][0] != 21.09 {
		t.Errorf("got %v, %v", top, err)
	}
	if sentence, _ := explained(top, "runtime.memmove"); sentence == unexplained {
		t.Error("it has no sentence")
	}
}

func TestAreas(t *testing.T) {
	all, err := spentIn("Type: cpu\n      flat  flat%   sum%        cum   cum%\n     0 0% 0%      2.31s 21.09%  encoding/json.Marshal\n     1s 9.1% 30%   2s 18%  github.com/go-json-experiment/json.Unmarshal\n")
	if err != nil {
		t.Fatal(err)
	}
	json := areas[2]
	if got := json.of(all); got != 39.09 {
		t.Errorf("%s take %v %%, want 39.09", json.name, got)
	}
	if sentence, _ := reason(figures{}, json.name); sentence != json.sentence {
		t.Errorf("got %q", sentence)
	}
}
