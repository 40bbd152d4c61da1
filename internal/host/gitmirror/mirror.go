// Package gitmirror keeps a copy of a repository on a host, as a bare repository from which the repositories of jobs read objects. It is made of
// directories that never change: each fetch adds one, with a pack of what is new.
package gitmirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Template is the directory in a mirror for GIT_TEMPLATE_DIR (git-init(1)). What `git init` and `git clone` make with it reads objects from the mirror.
const Template = "template"

const (
	// mostPacks is how many packs a mirror has before they are made one: git looks into each of them for an object.
	mostPacks = 16
	// mostBranches bounds the branches that a mirror knows. The objects of one that it forgets are fetched again.
	mostBranches = 64
)

// Mirror is where a mirror comes from, and how jobs see it.
type Mirror struct {
	lifecycle.Mirror
	// At is the directory in which jobs see the mirror, an absolute path.
	At string
	// Fresh is how old a mirror may be before it is fetched again.
	Fresh time.Duration
	// Largest bounds what a fetch writes, in bytes.
	Largest uint64
	// Env has the variables of the proxy.
	Env []string
}

// Change is what a fetch has written.
type Change struct {
	// Packs is how many packs are new; 0: nothing is.
	Packs int
	// Whole: they are all of the mirror, and what it had before is not needed any more.
	Whole bool
}

// Fetch writes to dir, which is empty, what a mirror does not have yet of the branch. The mirror is what the directories in below have together, the
// newest first. If the mirror is fresh, or has all of it, or with an error, nothing is written.
func (m Mirror) Fetch(ctx context.Context, below []string, dir string) (Change, error) {
	if err := m.check(); err != nil {
		return Change{}, err
	}
	had, err := readBranches(below)
	if err != nil {
		return Change{}, err
	}
	last := had[m.ref()]
	if age := time.Since(last.at); last.sha != "" && age >= 0 && age < m.Fresh {
		return Change{}, nil
	}
	had.makeRoomFor(m.ref())
	work := filepath.Join(dir, "fetch")
	defer os.RemoveAll(work)
	if err := m.lay(work, had, below); err != nil {
		return Change{}, fmt.Errorf("make a repository to fetch into: %w", err)
	}
	g := m.git(work)
	if err := g.run(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", m.URL, "+"+m.ref()+":"+m.ref()); err != nil {
		return Change{}, err
	}
	sha, err := g.sha(ctx, m.ref())
	if err != nil || sha == last.sha {
		return Change{}, err
	}
	had[m.ref()] = branch{sha, time.Now()}
	c := Change{Whole: len(below) == 0}
	if packs(below) >= mostPacks-1 && g.run(ctx, "repack", "-a", "-d", "-q") == nil {
		c.Whole = true // else there is one more
	}
	c.Packs, err = m.keep(work, dir, had)
	return c, err
}

// check refuses an address or a branch that git could take for something else.
func (m Mirror) check() error {
	scheme, rest, _ := strings.Cut(m.URL, "://")
	switch {
	case scheme != "https" && scheme != "http" || rest == "" || strings.ContainsAny(m.URL, "@\n\r \x00"):
		return errors.New("the address of the repository to mirror is not https://HOST/OWNER/NAME.git")
	case m.Branch == "" || strings.ContainsAny(m.Branch, " ~^:?*[\\\x7f") || strings.ContainsFunc(m.Branch, func(r rune) bool { return r < ' ' }) || strings.Contains(m.Branch, ".."):
		return fmt.Errorf("%.80q is no branch of git", m.Branch)
	}
	return nil
}

func (m Mirror) ref() string { return "refs/heads/" + m.Branch }

// lay makes a bare repository that reads from the mirror, and knows its branches.
func (m Mirror) lay(work string, has branches, below []string) error {
	var alternates strings.Builder
	for _, dir := range below {
		if _, err := os.Stat(filepath.Join(dir, "objects")); err == nil {
			fmt.Fprintln(&alternates, filepath.Join(dir, "objects"))
		}
	}
	err := writeRepository(work, has)
	return errors.Join(err, writeFiles(work, map[string]string{"objects/info/alternates": alternates.String()}))
}

// keep moves what is to be kept of a repository that was fetched into, and makes the directory a mirror.
func (m Mirror) keep(work, dir string, has branches) (int, error) {
	if err := writeRepository(dir, has); err != nil {
		return 0, err
	}
	err := writeFiles(dir, map[string]string{
		Template + "/objects/info/alternates": filepath.Join(m.At, "objects") + "\n",
		Template + "/info/exclude":            "",
		Template + "/hooks/":                  "",
	})
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(work, "objects/pack/pack-*"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, file := range files {
		switch filepath.Ext(file) {
		case ".pack":
			n++
		case ".idx", ".rev":
		default:
			continue
		}
		if err := os.Rename(file, filepath.Join(dir, "objects/pack", filepath.Base(file))); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// writeRepository writes what makes a directory a bare repository with some branches (gitrepository-layout(5)).
func writeRepository(dir string, has branches) error {
	return writeFiles(dir, map[string]string{
		"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
		packedRefs: has.packed(), fetchedAt: has.fetched(), "objects/pack/": "", "refs/": "",
	})
}

// writeFiles writes files below a directory; a name that ends with a slash is a directory.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			continue
		}
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packs counts the packs of a mirror.
func packs(below []string) (n int) {
	for _, dir := range below {
		found, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack")) // the pattern is sound
		n += len(found)
	}
	return n
}
