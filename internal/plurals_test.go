package internal_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plainPlural is a number before a word that is right for more than one alone: "%d hosts" is "1 hosts" at times.
var plainPlural = regexp.MustCompile(`%d (?:(?:fresh|idle|leaked|more|newer|other|spot|such) )?(?:checks|hosts|jobs|machines|others|reasons|registrations|requests|rows|runners|runs|types|vCPUs)\b`)

// sayingNumbers are the directories whose sentences people read: reasons, answers of remuda, the page and the job's log.
var sayingNumbers = []string{"internal/agent", "internal/cli", "internal/compute", "internal/fleet", "internal/lifecycle", "internal/page", "internal/policy", "remuda"}

// neverOne are sentences whose number is never one, where they are said.
var neverOne = []string{
	"all %d hosts are taken, and some boot or register", // one host has a sentence of its own
	"%d jobs have waited for hosts",
	"End these %d hosts",
	", after the %d jobs before it",
	"there are more than %d such rows: ask for fewer days, or for one repository or pool",
	"job %d runs on %s", // here it is a verb
	"%d runs were on it before%s, and it was reset after each. Its machine was launched at %s.",
	"The chart shows the first %d of %d requests, jobs and hosts.", // of more than fit on a page
	"%d of %d checks in a row",
	"%d of %d machines have no record or a restored one, so none is ended for that; else it would be ended: %s", // the guard begins at three
}

// TestPlurals: numbers of things are written by internal/lifecycle/plural, which knows the word for one.
func TestPlurals(t *testing.T) {
	said := map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") || strings.Contains(f.path, "computetest/") || !within(f.path, sayingNumbers) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if ok && plainPlural.MatchString(text) {
				said[text] = true
				if !slices.Contains(neverOne, text) {
					t.Errorf("%s: %q: write the number by internal/lifecycle/plural, or say in neverOne why it is never one", f.at(e.Pos()), text)
				}
			}
			return !ok
		})
	}
	for _, text := range neverOne {
		if !said[text] {
			t.Errorf("neverOne has %q, which is not said", text)
		}
	}
}
