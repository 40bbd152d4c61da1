package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/sim"
	"github.com/remuda-ci/remuda/internal/sim/explore"
)

// TestRefused: arguments with which nothing would be tried, or something else than was asked for, must not end in "all rules held".
func TestRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-seed=0":            "-seed=0: a seed is at least 1",
		"-seed=-3":           `invalid value "-3" for flag -seed`,
		"-first=0":           "-first=0: a seed is at least 1",
		"-first=-1":          `invalid value "-1" for flag -first`,
		"-seeds=0":           "-seeds=0: without a life nothing is tried: it is at least 1",
		"-seeds=-1":          "-seeds=-1: without a life nothing is tried: it is at least 1",
		"-hosts=0":           "-hosts=0: a life has at least 1 host",
		"-hosts=-5":          "-hosts=-5: a life has at least 1 host",
		"-hours=0":           "-hours=0: faults need a time above 0, of at most 1000000 hours",
		"-hours=-1":          "-hours=-1: faults need a time above 0",
		"-hours=NaN":         "-hours=NaN: faults need a time above 0",
		"-hours=1e-14":       "-hours=1e-14: faults need a time above 0",
		"-hours=1e7":         "-hours=1e+07: faults need a time above 0, of at most 1000000 hours",
		"-keep=0":            "-keep=0: a trace shows at least 1 event",
		"-keep=-1":           "-keep=-1: a trace shows at least 1 event",
		"-explore=":          "-explore=: name bounds",
		"-story=":            "-story=: name the file of a story",
		"-seed=3 -new":       "-seed names one life and -new takes others",
		"-seeds=1 -new=true": "",
		"-seeds=2 nonsense":  `"nonsense" is no flag`,
		"-seeds=0 -hosts=-5": "-hosts=-5: a life has at least 1 host\n-seeds=0: ",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", args, err, want)
		}
	}
}

// TestBounds: a name that is none gets all that there are, and the program takes each of them.
func TestBounds(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"-explore=nope"}, io.Discard)
	head := "there are no bounds \"nope\"; there are small, large, or one of them alone:\n  "
	if err == nil || !strings.HasPrefix(err.Error(), head) {
		t.Fatalf("the error is %v, want %s", err, head)
	}
	names := strings.Split(strings.TrimPrefix(err.Error(), head), "\n  ")
	if want := len(explore.Small) + len(explore.Large); len(names) != want {
		t.Errorf("%d names, want %d", len(names), want)
	}
	for _, name := range append(names, "small", "large") {
		if _, err := parse([]string{"-explore", name}, io.Discard); err != nil {
			t.Error(err)
		}
	}
}

// TestDefaults: a flag that is left out keeps its default, and one that is given has its value.
func TestDefaults(t *testing.T) {
	t.Parallel()
	o, err := parse(nil, io.Discard)
	if want := (sim.Config{Seed: 1}); err != nil || o.config(o.first) != want || o.seeds != 200 {
		t.Errorf("%+v, %d lives, %v; want 200 of %+v", o.config(o.first), o.seeds, err, want)
	}
	o, err = parse(strings.Fields("-first=7 -seeds=1 -hosts=1 -hours=0.5 -keep=1"), io.Discard)
	if want := (sim.Config{Seed: 7, Hosts: 1, Chaos: 30 * time.Minute, Keep: 1}); err != nil || o.config(o.first) != want || o.seeds != 1 {
		t.Errorf("%+v, %d lives, %v; want 1 of %+v", o.config(o.first), o.seeds, err, want)
	}
}
