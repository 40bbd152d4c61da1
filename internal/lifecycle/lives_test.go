package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLives replays whole lives of hosts. A file under testdata/lives is a
// script of events (the lines that begin with "> ") with what came of each
// (the indented lines below it). Lines that begin with "#" are for the reader.
// The events are those of life.do.
func TestLives(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "lives", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no lives found")
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("lives", name), replay(t, string(script)))
		})
	}
}

// replay runs the events of a script and returns it with what came of them.
func replay(t *testing.T, script string) string {
	t.Helper()
	l := newLife()
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		event, isEvent := strings.CutPrefix(line, "> ")
		switch {
		case strings.HasPrefix(line, "    "): // what came of it the last time
			continue
		case !isEvent:
			fmt.Fprintln(&b, line)
			continue
		}
		if err := l.do(event); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		fmt.Fprintln(&b, line)
		for _, said := range l.said {
			fmt.Fprintln(&b, "    "+said)
		}
		l.said = nil
	}
	return b.String()
}
