package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The line is found wherever it lies in the pieces that are read.
func TestLogScan(t *testing.T) {
	t.Parallel()
	line := string(listening)
	tests := map[string]struct {
		writes []string // one after the other, with a look after each
		offset int64
		want   int // after which write it is found; 0: never
	}{
		"at once":               {[]string{"x: " + line + "\n"}, 0, 1},
		"never":                 {[]string{"x", "Listening for", "Jobs"}, 0, 0},
		"in two writes":         {[]string{"Listening f", "or Jobs"}, 0, 2},
		"byte by byte":          {strings.Split(line, ""), 0, len(line)},
		"before the offset":     {[]string{line + "\n"}, int64(len(line)), 0},
		"after a huge line":     {[]string{strings.Repeat("x", 5*scanChunk+7), line}, 0, 2},
		"twice in a huge write": {[]string{strings.Repeat("y", scanChunk) + line + line}, 0, 1},
		"an empty log":          {[]string{"", "", line}, 0, 3},
	}
	for d := -len(line); d <= len(line); d++ {
		tests["across the pieces "+string(rune('a'+len(line)+d))] = struct {
			writes []string
			offset int64
			want   int
		}{[]string{strings.Repeat("x", scanChunk+d) + line + strings.Repeat("y", scanChunk)}, 0, 1}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			var scan logScan
			var text string
			found := 0
			for i, w := range test.writes {
				text += w
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if scan.contains(path, startRecord{LogOffset: test.offset}, listening) && found == 0 {
					found = i + 1
				}
			}
			if found != test.want {
				t.Errorf("found after write %d, want %d", found, test.want)
			}
		})
	}
}

func TestLogScanOfACutLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	var scan logScan
	for _, text := range []string{strings.Repeat("x", 1000), string(listening)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		found := scan.contains(path, startRecord{LogOffset: 500}, listening)
		if found != (text == string(listening)) {
			t.Errorf("found: %t", found)
		}
	}
	if scan.contains(filepath.Join(t.TempDir(), "none"), startRecord{LogOffset: 1}, listening) {
		t.Error("found in a log that is not there")
	}
}
