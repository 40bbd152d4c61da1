package policy_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

func TestPatterns(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"push", "push", true},
		{"push", "pushed", false},
		{"push", "a push", false},
		{"pus.", "push", false},
		{"refs/heads/*", "refs/heads/main", true},
		{"refs/heads/*", "refs/heads/a/b", false},
		{"refs/heads/**", "refs/heads/a/b", true},
		{"refs/heads/**", "refs/tags/v1", false},
		{"**/ci.yml@*", "acme/app/.github/workflows/ci.yml@main", true},
		{"**", "any/thing at\nall", true},
		{"*", "", false},
		{"release-*-x", "release-1-x", true},
		{"release-*-x", "release-1-x/y", false},
		{"a+(b)|c$", "a+(b)|c$", true},
		{"refs/heads/main", "refs/heads/main\n", false},
		{"refs/heads/main", "x\nrefs/heads/main", false},
		{"Push", "push", false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.text, func(t *testing.T) {
			if err := policy.CheckPattern(tt.pattern); err != nil {
				t.Fatal(err)
			}
			rules := policy.Rules{{OwnerID: 1, MaxHosts: 1, Refs: []string{"none", tt.pattern}}}
			_, v := rules.Admit(policy.Origin{OwnerID: 1, Event: "push", Ref: tt.text}, lifecycle.Spec{Pool: "default", Count: 1})
			if v.Allowed != tt.want {
				t.Errorf("got %+v, want %t", v, tt.want)
			}
		})
	}
}

func TestPatternsThatAreNone(t *testing.T) {
	long := make([]byte, policy.MaxPattern+1)
	for i := range long {
		long[i] = 'a'
	}
	for _, p := range []string{"", "***", "a?", "[ab]", "{a,b}", `a\*`, "!main", "a b", "a\n", string(long)} {
		if policy.CheckPattern(p) == nil {
			t.Errorf("%.20q is taken", p)
		}
		rules := policy.Rules{{OwnerID: 1, MaxHosts: 1, Refs: []string{p}}}
		if _, v := rules.Admit(policy.Origin{OwnerID: 1, Event: "push", Ref: p}, lifecycle.Spec{Pool: "default", Count: 1}); v.Allowed {
			t.Errorf("%.20q matches", p)
		}
	}
	for _, p := range []string{"a!", "**", string(long[1:])} {
		if err := policy.CheckPattern(p); err != nil {
			t.Errorf("%.20q: %v", p, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("refs/heads/**", "refs/heads/main")
	f.Add("*(", "a(")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		rules := policy.Rules{{OwnerID: 1, MaxHosts: 1, Refs: []string{pattern}}}
		_, v := rules.Admit(policy.Origin{OwnerID: 1, Event: "push", Ref: text}, lifecycle.Spec{Pool: "default", Count: 1})
		if v.Allowed && (text == "" || policy.CheckPattern(pattern) != nil) {
			t.Errorf("%q matches %q", pattern, text)
		}
	})
}
