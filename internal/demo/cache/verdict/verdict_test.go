package verdict_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/demo/cache/verdict"
	"github.com/remuda-ci/remuda/internal/local"
)

// good are a cold run, a warm one, a pull request and the run after it. Everything holds.
func good() []verdict.Step {
	step := func(id, what string, warm bool, build float64, downloaded int64, marks ...string) verdict.Step {
		return verdict.Step{
			RunID: id, What: what, Host: "i-1", Warm: warm, Ready: 0.25, Go: build, NPM: 3, Ran: build + 4, Release: 1.04, Downloaded: downloaded, Kept: 366_300_000,
			Expected: append([]string{}, marks...), Found: map[string][]string{"mod": append([]string{}, marks...), ".npm": append([]string{}, marks...)},
		}
	}
	return []verdict.Step{
		step("1", "first run", false, 30, 92_000_000), step("2", "second run", true, 0.7, 1000, "1"),
		step("3", "pull request", true, 0.7, 0, "1", "2"), step("4", "main again", true, 0.7, 0, "1", "2"),
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func([]verdict.Step)
		want   []string
	}{
		"all holds":         {func([]verdict.Step) {}, nil},
		"just fast enough":  {func(s []verdict.Step) { s[1].Ran = s[0].Ran / 3 }, nil},
		"not fast enough":   {func(s []verdict.Step) { s[1].Ran = 11.4 }, []string{"run 2 took 11.4 s, more than a third of the 34.0 s of run 1"}},
		"a wait for a disk": {func(s []verdict.Step) { s[2].Ready = 20 }, nil},
		"a slow pull request": {func(s []verdict.Step) { s[2].Ran = 12 }, []string{
			"run 3 took 12.0 s, more than a third of the 34.0 s of run 1",
		}},
		"a download again": {func(s []verdict.Step) { s[3].Downloaded = 930_000 }, []string{
			"run 4 downloaded 0.9 MB, which should have been in its caches",
		}},
		"a host that had something": {func(s []verdict.Step) { s[3].Warm, s[3].Downloaded = false, 18_000_000 }, []string{
			"run 4 downloaded only 18.0 MB, and its host should have had nothing",
		}},
		"a proxy that is not used": {func(s []verdict.Step) { s[0].Downloaded, s[1].Downloaded = 1000, 0 }, []string{
			"run 1 downloaded only 0.0 MB: the programs do not go through the proxy that counts",
		}},
		"what a pull request left": {func(s []verdict.Step) { s[3].Found[".npm"] = []string{"1", "2", "3"} }, []string{
			"run 4 found in .npm the marks of 1 and 2 and 3, and should have found those of 1 and 2",
		}},
		"what was not kept": {func(s []verdict.Step) { s[1].Found["mod"] = nil }, []string{
			"run 2 found in mod the marks of no run, and should have found those of 1",
		}},
		"nothing said": {func(s []verdict.Step) { s[3].Found = nil }, []string{"run 4 says nothing of its caches"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := good()
			test.change(steps)
			if diff := cmp.Diff(test.want, verdict.Judge(steps)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
	if broken := verdict.Judge(good()[:1]); len(broken) != 1 {
		t.Errorf("of one run: %q", broken)
	}
}

const table = `RUN  WHAT          HOST  READY IN  GO      NPM    RAN IN  DOWNLOADED  POOLED IN  KEPT
1    first run     i-1   0.2 s     30.0 s  3.0 s  34.0 s  92.0 MB     1.0 s      366.3 MB
2    second run    i-1   0.2 s     0.7 s   3.0 s  4.7 s   0.0 MB      1.0 s      366.3 MB
3    pull request  i-1   0.2 s     0.7 s   3.0 s  4.7 s   0.0 MB      1.0 s      366.3 MB
4    main again    i-1   0.2 s     0.7 s   3.0 s  4.7 s   0.0 MB      1.0 s      366.3 MB
`

func TestTable(t *testing.T) {
	t.Parallel()
	for mechanism, says := range map[string]string{"copy": "a view is a copy", "overlay": "a view is a mount"} {
		var out bytes.Buffer
		if err := verdict.NewResult(mechanism, good()).Write(&out); err != nil {
			t.Fatal(err)
		}
		got, words, _ := strings.Cut(out.String(), "\n\n")
		if diff := cmp.Diff(table, got+"\n"); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		if !strings.HasPrefix(words, "The second run was 7.2 times faster than the first, and 6.9 times with the wait") || !strings.Contains(words, says) {
			t.Errorf("with %s it says %q", mechanism, words)
		}
	}
}

// What scripts get has every step, and lists that are empty rather than null.
func TestJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	want := verdict.NewResult("copy", good())
	if err := want.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "null") {
		t.Errorf("it has a null:\n%s", &out)
	}
	var got verdict.Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	run := local.Run{Jobs: []local.Job{
		{Name: "go", Log: "go: downloading x\ntook 30.046 s\nyq\n"},
		{Name: "npm", Log: "it took 5 s\ntook 4.2 s\n"},
		{Name: "marks", Log: "found the mark of run 1002 in mod\nfound the mark of run 1001 in mod\nleft a mark in mod\nleft a mark in go-build\n"},
	}}
	var got verdict.Step
	if err := got.Read(run); err != nil {
		t.Fatal(err)
	}
	want := verdict.Step{Go: 30.046, NPM: 4.2, Found: map[string][]string{"mod": {"1001", "1002"}, "go-build": {}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	run.Jobs[0].Log = "took a while"
	if err := got.Read(run); err == nil || !strings.Contains(err.Error(), "the job go does not say how long it took") {
		t.Errorf("of a job that says no time: %v", err)
	}
}
