package internal_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// answering are the directories and files that say why a job or a run waits, or gets no host at all: `remuda why`, the page, the metrics, the
// check run and the job's log have their codes.
var answering = []string{
	"internal/policy/waiting/", "internal/policy/unserved/", "internal/policy/budget/", "internal/fleet/explain/", "internal/fleet/jobs/refused.go",
	"internal/fleet/jobs/webhook_unknown.go", "internal/fleet/provision/launch.go",
}

// codeRow is a row of a table of the page whose first cell has codes alone.
var codeRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|")

// TestTroubleshootingCodes: each code that a wait or its explanation can have is in a table of docs/troubleshooting.md, and each code of a table is
// declared.
func TestTroubleshootingCodes(t *testing.T) {
	byName, declared := codeNames(t), reasonCodes(t)
	var documented []string
	for _, row := range codeRow.FindAllStringSubmatch(pages(t)["docs/troubleshooting.md"], -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			code = strings.Trim(code, "`")
			documented = append(documented, code)
			if !slices.Contains(declared, code) {
				t.Errorf("the page has the code %s, which does not exist", code)
			}
		}
	}
	found := 0
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") || !slices.ContainsFunc(answering, func(place string) bool { return strings.HasPrefix(f.path, place) }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && byName[name.Name] != "" {
				if found++; !slices.Contains(documented, byName[name.Name]) {
					t.Errorf("%s answers with %s, which docs/troubleshooting.md does not have", f.at(n.Pos()), byName[name.Name])
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d uses of codes were found", found)
	}
}
