package subject_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/cli/subject"
)

func TestParse(t *testing.T) {
	run := subject.Subject{Repository: "acme/shop", RunID: "41"}
	tests := map[string]struct {
		args []string
		want subject.Subject
	}{
		"repository and run":       {[]string{"acme/shop", "41"}, run},
		"in one word":              {[]string{"acme/shop/41"}, run},
		"a dotted name":            {[]string{"acme/shop.js/41"}, subject.Subject{Repository: "acme/shop.js", RunID: "41"}},
		"a managed user":           {[]string{"octo_corp/shop/41"}, subject.Subject{Repository: "octo_corp/shop", RunID: "41"}},
		"URL of a run":             {[]string{"https://github.com/acme/shop/actions/runs/41"}, run},
		"URL of an attempt":        {[]string{"https://github.com/acme/shop/actions/runs/41/attempts/2"}, run},
		"URL with a query":         {[]string{"https://github.com/acme/shop/actions/runs/41?pr=7#summary"}, run},
		"URL of a server":          {[]string{"https://git.acme.com/acme/shop/actions/runs/41/"}, run},
		"URL of a job":             {[]string{"https://github.com/acme/shop/actions/runs/41/job/7"}, subject.Subject{Repository: "acme/shop", RunID: "41", JobID: 7}},
		"URL of an older job":      {[]string{"https://github.com/acme/shop/actions/runs/41/attempts/1/job/7"}, subject.Subject{Repository: "acme/shop", RunID: "41", JobID: 7}},
		"a run alone":              {[]string{"41"}, subject.Subject{RunID: "41"}},
		"the slot of a job pool":   {[]string{"turn:default:3"}, subject.Subject{RunID: "turn:default:3"}},
		"a slot as events show it": {[]string{"acme/shop/turn:default:3"}, subject.Subject{Repository: "acme/shop", RunID: "turn:default:3"}},
		"its parts":                {[]string{"acme/shop", "spare:default:3"}, subject.Subject{Repository: "acme/shop", RunID: "spare:default:3"}},
		"a warm pool":              {[]string{"warm:default"}, subject.Subject{RunID: "warm:default"}},
		"a request":                {[]string{"5f0e2f4a-" + strings.Repeat("0", 64)}, subject.Subject{RunID: "5f0e2f4a-" + strings.Repeat("0", 64)}},
		"a runner":                 {[]string{"remuda-12-i-0b22a22eec53b9321"}, subject.Subject{InstanceID: "i-0b22a22eec53b9321"}},
		"no runner of ours":        {[]string{"remuda-12"}, subject.Subject{RunID: "remuda-12"}},
		"a host":                   {[]string{"i-0b22a22eec53b9321"}, subject.Subject{InstanceID: "i-0b22a22eec53b9321"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := subject.Parse(test.args)
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{
		nil, {""}, {"acme/shop"}, {"acme/shop/"}, {"/41"}, {"a b"}, {"acme", "41"}, {"acme/shop", "4/1"}, {"acme/shop", "41", "2"},
		{"warm:"}, {"acme/shop/warm:default"}, {"turn:default"}, {"https://github.com/acme/shop"}, {"https://github.com/acme/shop/pull/41"}, {"https://github.com/acme/shop/actions/runs/"}, {"https://github.com/acme/shop/actions/runs/41/job/x"}, {"://"},
	} {
		if got, err := subject.Parse(args); err == nil {
			t.Errorf("%q is %+v, and should be refused", args, got)
		}
	}
}

func TestParseRun(t *testing.T) {
	if got, err := subject.ParseRun([]string{"acme/shop/41"}); err != nil || got.String() != "acme/shop 41" {
		t.Errorf("got %s, %v", got, err)
	}
	for _, text := range []string{"41", "i-0b22a22eec53b9321", "acme/shop/turn:default:3"} {
		if _, err := subject.ParseRun([]string{text}); err == nil || !strings.Contains(err.Error(), "owner/name") {
			t.Errorf("%s: got %v, want an error that says how", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("acme/shop/41")
	f.Add("https://github.com/acme/shop/actions/runs/41/job/7")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := subject.Parse([]string{text})
		if err == nil && s.InstanceID == "" && s.RunID == "" {
			t.Errorf("%q is nothing, without an error", text)
		}
	})
}
