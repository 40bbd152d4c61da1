package table_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cli/table"
)

func TestWrite(t *testing.T) {
	hosts := table.Table{Head: []string{"HOST", "STATE", "RUN"}, Rows: [][]table.Cell{
		{{Text: "i-1"}, {Text: "running", Style: table.Good}, {Text: "41"}},
		table.Row("i-23456", "…", ""),
		table.Row("i-\x1b[31m\n2", "a", "b"), // a reason may hold what a job wrote
	}}
	tests := map[string]struct {
		color bool
		want  string
	}{
		"plain": {false, "HOST       STATE    RUN\ni-1        running  41\ni-23456    …        -\ni- [31m 2  a        b\n"},
		"colors": {true, "\x1b[1mHOST\x1b[0m       \x1b[1mSTATE\x1b[0m    \x1b[1mRUN\x1b[0m\n" +
			"i-1        \x1b[32mrunning\x1b[0m  41\ni-23456    …        -\ni- [31m 2  a        b\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := hosts.Write(&b, test.color); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
