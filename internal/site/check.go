package site

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// Repository is the address of the repository on the web, as in mkdocs.yml.
const Repository = "https://github.com/remuda-ci/remuda"

// Site is what is checked.
type Site struct {
	Files fs.FS // as they were built
	Tree  fs.FS // the files of the repository, to which links lead there
}

// Report is what Check found.
type Report struct {
	Pages, Links int
	Problems     []string // a sentence each, which begins with the page
}

// Check reads every page of the site and follows its links.
func (s Site) Check() (Report, error) {
	pages, err := s.pages()
	if err != nil {
		return Report{}, err
	}
	var found Report
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		p := pages[name]
		found.Pages++
		found.Links += len(p.links)
		for _, l := range p.links {
			if wrong := s.follow(pages, name, l); wrong != "" {
				found.Problems = append(found.Problems, fmt.Sprintf("%s: %s: %s", name, l.to, wrong))
			}
		}
		for _, text := range p.unread {
			found.Problems = append(found.Problems, fmt.Sprintf("%s: %q is shown as text: leave an empty line before it in the Markdown", name, text))
		}
	}
	wrong, err := s.styles()
	found.Problems = append(found.Problems, wrong...)
	return found, err
}

// styles says what is wrong with the addresses in the style sheets of the site.
func (s Site) styles() (problems []string, err error) {
	err = fs.WalkDir(s.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".css" {
			return err
		}
		css, err := fs.ReadFile(s.Files, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, l := range ofStyle(string(css)) {
			if wrong := s.follow(nil, name, l); wrong != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", name, l.to, wrong))
			}
		}
		return nil
	})
	return problems, err
}

// pages reads the HTML files of the site, by their names.
func (s Site) pages() (map[string]page, error) {
	pages := map[string]page{}
	err := fs.WalkDir(s.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		file, err := s.Files.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		pages[name], err = read(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return nil
	})
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("no page in the site: build it with make site")
	}
	return pages, err
}
