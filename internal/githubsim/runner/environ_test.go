package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnvFile(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]string
		bad  bool
	}{
		"empty":          {"", map[string]string{}, false},
		"pairs":          {"A=1\nB=x=y\r\n\nC=\n", map[string]string{"A": "1", "B": "x=y", "C": ""}, false},
		"block":          {"A<<END\none\n\ntwo\nEND\nB=2\n", map[string]string{"A": "one\n\ntwo", "B": "2"}, false},
		"pair with <<":   {"A=1<<2\n", map[string]string{"A": "1<<2"}, false},
		"empty block":    {"A<<END\nEND\n", map[string]string{"A": ""}, false},
		"no end":         {"A<<END\none\n", nil, true},
		"no name":        {"=1\n", nil, true},
		"no sign at all": {"word\n", nil, true},
		"no delimiter":   {"A<<\n", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			err := parseEnvFile(tc.text, got)
			if (err != nil) != tc.bad {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" && !tc.bad {
				t.Error(d)
			}
		})
	}
}

func TestInputsFromBothPlaces(t *testing.T) {
	in, unknown := readInputs([]string{"remove", "--Name", "flag", "--replace", "--Token", "first", "--token", "second"},
		[]string{"ACTIONS_RUNNER_INPUT_NAME=env", "actions_runner_input_token=secret", "ACTIONS_RUNNER_INPUT_EPHEMERAL=True", "OTHER=1"})
	if d := cmp.Diff([]string{"replace", "name"}, unknown); d != "" {
		t.Error(d)
	}
	want := inputs{"remove", map[string]string{"name": "flag", "token": "first"}, map[string]bool{"replace": true, "ephemeral": true}}
	if d := cmp.Diff(want, in, cmp.AllowUnexported(inputs{})); d != "" {
		t.Error(d)
	}
	if in, _ := readInputs([]string{"--token"}, nil); len(in.values) != 0 {
		t.Error("an option without its value was taken")
	}
}
