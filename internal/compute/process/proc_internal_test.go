package process

import "testing"

func TestParseStat(t *testing.T) {
	const rest = " S 1 7 7 0 -1 4194560 164 0 0 0 0 0 0 0 20 0 1 0 123456 2940928 233"
	want := proc{procID: procID{pid: 7, start: 123456}, state: 'S', session: 7}
	for _, command := range []string{"sh", "a b", "a) Z 9 (", ")", ""} {
		got, err := parseStat(7, "7 ("+command+")"+rest)
		if err != nil || got != want {
			t.Errorf("command %q: got %+v, %v", command, got, err)
		}
	}
	for _, bad := range []string{"", "7 (sh", "7 (sh) S 1 7 7", "7 (sh) S 1 7 x 0 -1 4194560 164 0 0 0 0 0 0 0 20 0 1 0 123456 1",
		"7 (sh) S 1 7 7 0 -1 4194560 164 0 0 0 0 0 0 0 20 0 1 0 soon 1"} {
		if got, err := parseStat(7, bad); err == nil {
			t.Errorf("stat %q: got %+v and no error", bad, got)
		}
	}
}
