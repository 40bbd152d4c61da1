package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// pages returns every markdown page of the repository, by its path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	return files(t, ".md")
}

// files reads every file of the repository whose name ends in suffix, by its path from the root.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".cache" || d.Name() == ".git" || d.Name() == ".state" || d.Name() == "bin" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(path, suffix):
			text, err := os.ReadFile(path)
			found[filepath.ToSlash(strings.TrimPrefix(path, "../"))] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// outsideFences returns a page with its fenced blocks emptied, so that line numbers stay.
func outsideFences(page string) string {
	var b strings.Builder
	inFence := false
	for line := range strings.Lines(page) {
		switch fence := strings.HasPrefix(strings.TrimSpace(line), "```"); {
		case fence:
			inFence = !inFence
			b.WriteString("\n")
		case inFence:
			b.WriteString("\n")
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) []string {
	var all []string
	for line := range strings.Lines(outsideFences(page)) {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if level == 0 || level > 6 || line[level] != ' ' {
			continue
		}
		name := anchorOf(strings.TrimSpace(line[level:]))
		anchor := name
		for n := 1; slices.Contains(all, anchor); n++ {
			anchor = fmt.Sprintf("%s-%d", name, n)
		}
		all = append(all, anchor)
	}
	return all
}

// anchorOf returns the anchor of a heading: lower case, spaces as hyphens, no punctuation.
func anchorOf(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			return unicode.ToLower(c)
		}
		return -1
	}, heading)
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks checks that every relative link between pages leads to a file that exists, and to a heading in it.
func TestLinks(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, m := range markdownLink.FindAllStringSubmatch(outsideFences(page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
			}
			if _, err := os.Stat(filepath.Join("..", to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
}

// docReference is how code refers to a page: docs/design.md#the-lifecycle. Messages to users name pages the same way.
var docReference = regexp.MustCompile(`\bdocs/([a-z/-]+\.(?:md|svg|json))(?:#([a-z0-9_-]+))?`)

// vagueReference is a reference to a design that does not say where it is.
var vagueReference = regexp.MustCompile(`[Dd]esign section|(?:^|[^/a-z-])(?:design|interfaces)\.md`)

// referenceParts has a part of each text that the two patterns match.
var referenceParts = []string{"docs/", "esign section", "design.md", "interfaces.md"}

// TestReferences checks that each page that code refers to exists, with its section.
func TestReferences(t *testing.T) {
	all := pages(t)
	for path, text := range files(t, ".go") {
		if path == "internal/docs_test.go" {
			continue
		}
		// Most files have neither, and to look for a constant is much cheaper than a pattern.
		if !slices.ContainsFunc(referenceParts, func(part string) bool { return strings.Contains(text, part) }) {
			continue
		}
		for _, m := range docReference.FindAllStringSubmatch(text, -1) {
			page := "docs/" + m[1]
			if _, err := os.Stat(filepath.Join("..", page)); err != nil {
				t.Errorf("%s refers to %s, which does not exist", path, m[0])
			} else if m[2] != "" && !slices.Contains(anchors(all[page]), m[2]) {
				t.Errorf("%s refers to %s, which has no such heading", path, m[0])
			}
		}
		if m := vagueReference.FindString(text); m != "" {
			t.Errorf("%s says %q: name the page and its section, such as docs/design.md#the-lifecycle", path, m)
		}
	}
}

var goName = regexp.MustCompile("`((?:internal|proto|controld|agentd)[a-z0-9/]*)(?:\\.([A-Z][A-Za-z0-9]*))?`")

// TestGlossary checks that the words are in order, each once, and that the places that it names exist.
func TestGlossary(t *testing.T) {
	var words []string
	for line := range strings.Lines(pages(t)["docs/glossary.md"]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[0]) == "word" {
			continue
		}
		words = append(words, strings.ToLower(strings.TrimSpace(cells[0])))
		place := goName.FindStringSubmatch(cells[2])
		if place == nil {
			t.Errorf("%s: %q is no Go name", cells[0], cells[2])
		} else if err := declared(place[1], place[2]); err != nil {
			t.Errorf("%s: %v", cells[0], err)
		}
	}
	if len(words) < 50 || !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("%d words, which are not in order, or one is there twice: %q", len(words), words)
	}
}

// declared returns an error unless the directory has a package that declares name; an empty name is the package itself.
func declared(dir, name string) error {
	entries, err := os.ReadDir(filepath.Join("..", dir))
	if err != nil {
		return fmt.Errorf("%s does not exist", dir)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if name == "" || slices.Contains(declarations(file), name) {
			return nil
		}
	}
	return fmt.Errorf("%s has no %s", dir, name)
}

// declarations returns the names that a file declares at package level, without methods.
func declarations(file *ast.File) []string {
	var names []string
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// repositoryPath is a path of the repository, as a page quotes it.
var repositoryPath = regexp.MustCompile("`((?:agentd|controld|docs|examples|internal|packer|proto|scripts|systemd)/[A-Za-z0-9_./-]*)`")

// TestRecipes checks that every path that the pages for developers name exists.
func TestRecipes(t *testing.T) {
	all := pages(t)
	for _, path := range []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/design.md", "docs/testing.md"} {
		for _, m := range repositoryPath.FindAllStringSubmatch(outsideFences(all[path]), -1) {
			dir, name, isGo := strings.Cut(m[1], ".")
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil && (!isGo || declared(dir, name) != nil) {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
}

var warmJob = regexp.MustCompile(`(?m)^\| warm: claim, run, release \| (\$[0-9.]+) \|$`)

// TestTheCostOfAJob checks that docs/comparison.md has the figure of docs/cost.md, which a test counts.
func TestTheCostOfAJob(t *testing.T) {
	all := pages(t)
	m := warmJob.FindStringSubmatch(all["docs/cost.md"])
	if m == nil {
		t.Fatal("docs/cost.md has no row of a warm job")
	}
	if want := m[1] + " for a warm job of ten minutes"; !strings.Contains(all["docs/comparison.md"], want) {
		t.Errorf("docs/comparison.md does not say %q", want)
	}
}

var quotedCode = regexp.MustCompile("`([a-z_]+)`")

// TestReasonCodes checks that docs/interfaces.md has each reason code of internal/lifecycle, and no other.
func TestReasonCodes(t *testing.T) {
	_, section, found := strings.Cut(pages(t)["docs/interfaces.md"], "\n## Reason codes\n")
	if !found {
		t.Fatal("docs/interfaces.md has no reason codes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range quotedCode.FindAllStringSubmatch(cells[1], -1) {
				documented = append(documented, m[1])
			}
		}
	}
	declared := reasonCodes(t)
	for _, code := range declared {
		if !slices.Contains(documented, code) {
			t.Errorf("docs/interfaces.md lacks the reason code %s", code)
		}
	}
	for _, code := range documented {
		if !slices.Contains(declared, code) {
			t.Errorf("docs/interfaces.md has the reason code %s, which does not exist", code)
		}
	}
}

// reasonCodes returns the values of the constants of type ReasonCode.
func reasonCodes(t *testing.T) []string {
	t.Helper()
	codes := slices.Collect(maps.Values(codeNames(t)))
	if len(codes) < 40 {
		t.Fatalf("only %d reason codes were found", len(codes))
	}
	return codes
}

// codeNames are the reason codes by the names of their constants.
func codeNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "lifecycle/reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "ReasonCode" {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				byName[spec.Names[0].Name] = value
			}
		}
		return true
	})
	return byName
}
