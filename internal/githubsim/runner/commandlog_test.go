package runner

import (
	"strings"
	"testing"
)

func TestCommandLog(t *testing.T) {
	var out strings.Builder
	log := &commandLog{to: &out}
	for _, piece := range []string{"::gro", "up::a%0Ab\n", "::add-mask::se%25cret\n", "the se%cret", " is se%cret\n::error::100%25\n", "a::b\n", "no end"} {
		if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	log.flush()
	log.flush()
	want := "##[group]a\nb\nthe *** is ***\n##[error]100%\na::b\nno end\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
