package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file string
		whole      bool
		want       []string
		ok         bool
	}{
		{"enough", "ok ec2 CreateFleet 9000\nok sqs SendMessage 900\nok ec2 CreateFleet 99\nok ec2 CreateTags 1\n", true,
			[]string{"10000 requests to AWS held against its service models, 0 illegal (ec2 9100 in 2 operations, sqs 900 in 1 operations)"}, true},
		{"too few", "ok ec2 CreateFleet 9999\n", true, []string{
			"9999 requests to AWS held against its service models, 0 illegal (ec2 9999 in 1 operations)",
			"TOO FEW requests to AWS: a whole run holds at least 10000 against the models",
		}, false},
		{"few in a part of the tests", "ok ec2 CreateFleet 1\n", false,
			[]string{"1 requests to AWS held against its service models, 0 illegal (ec2 1 in 1 operations)"}, true},
		{"illegal", "illegal ec2 CreateFleet: x, in TestY\nok ec2 CreateFleet 1\n", false, []string{
			"1 requests to AWS held against its service models, 1 illegal (ec2 1 in 1 operations)",
			"ILLEGAL: ec2 CreateFleet: x, in TestY",
		}, false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, requestsFile), []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRequests(dir)
		if err != nil {
			t.Fatal(err)
		}
		lines, ok := r.summary(test.whole)
		if diff := cmp.Diff(test.want, lines); diff != "" || ok != test.ok {
			t.Errorf("%s: passed %t, want %t (-want +got)\n%s", test.name, ok, test.ok, diff)
		}
	}
	if r, err := readRequests(t.TempDir()); err != nil || len(r.services) > 0 {
		t.Errorf("without a file: got %v %v, want nothing", r, err)
	}
	dir := t.TempDir()
	for _, line := range []string{"ok ec2 CreateFleet\n", "ok ec2 CreateFleet x\n", "fine ec2 CreateFleet 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, requestsFile), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readRequests(dir); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func TestCompleteRuns(t *testing.T) {
	t.Parallel()
	all := []testPackage{{ImportPath: "a", asksAWS: true}, {ImportPath: "b"}}
	ran := func(a, b bool) []*pass {
		return []*pass{{results: map[string]*result{"a": {cached: a}}}, {results: map[string]*result{"b": {cached: b}}}}
	}
	whole := []string{"./..."}
	for _, test := range []struct {
		name            string
		patterns, flags []string
		passes          []*pass
		want            bool
	}{
		{"fresh", whole, []string{"-count=1"}, ran(false, false), true},
		{"what asks AWS not", whole, nil, ran(false, true), true},
		{"cached", whole, nil, ran(true, false), false},
		{"some packages", []string{"./internal/..."}, nil, ran(false, false), false},
		{"some tests", whole, []string{"-run=X"}, ran(false, false), false},
	} {
		if got := complete(all, test.patterns, test.flags, test.passes); got != test.want {
			t.Errorf("%s: complete %t, want %t", test.name, got, test.want)
		}
	}
}
