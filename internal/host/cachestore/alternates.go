package cachestore

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/tree"
)

// alternatesFile names, below a repository of git, the directories from which it reads objects that it has not (gitrepository-layout(5)).
const alternatesFile = "objects/info/alternates"

// maxAlternates bounds what is read of such a file, in bytes. git writes a line or two.
const maxAlternates = 64 << 10

// leaveOutBorrowers deletes from the changes of a view the repositories that read from Options.Lender: without it they would lack objects. Of one
// with a work tree that is its .git.
func (s *Store) leaveOutBorrowers(c attached) error {
	if s.o.Lender == "" || c.ReadOnly {
		return nil
	}
	for n := range c.Targets {
		changes := s.o.Mechanism.changes(s.viewDir(c.Key, n))
		repositories, err := borrowers(changes, s.o.Lender)
		if err != nil {
			return err
		}
		for _, path := range repositories {
			if path == "." {
				return refused("it is a repository of git that reads objects from %s", s.o.Lender)
			}
			if err := tree.Remove(filepath.Join(changes, path)); err != nil {
				return err
			}
			s.log.Info("a repository of git is left out of a cache: it reads from the mirror", logkey.Cache, c.Name, logkey.Directory, shorten(path))
		}
	}
	return nil
}

// borrowers are the repositories below a directory, as relative paths, that read objects from below another.
func borrowers(root, lender string) (found []string, err error) {
	w := walker{do: func(e entry) error {
		repository, ok := strings.CutSuffix("/"+e.path, "/"+alternatesFile)
		if !ok || e.kind() != unix.S_IFREG {
			return nil
		}
		f, err := e.open()
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxAlternates))
		if err != nil {
			return err
		}
		if len(data) == maxAlternates || bytes.Contains(data, []byte(lender+"/")) {
			found = append(found, filepath.Join(".", repository))
		}
		return nil
	}}
	return found, w.walk(root)
}
