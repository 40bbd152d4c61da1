// Package contexts keeps the fleets that a person works with in a file, as kubeconfig does: each has a name, and one is
// the current one. The file says which secrets a person has, so only its owner may read it.
package contexts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/safefile"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
	// maxFile bounds what is read, in bytes: 1,000 contexts have 300 KB.
	maxFile = 1 << 20
)

// Context is a fleet with a name.
type Context struct {
	Name           string `yaml:"name"`
	connect.Target `yaml:",inline"`
}

// File is what is in the file.
type File struct {
	// Current is the name of the context that counts without --context; empty: none.
	Current  string    `yaml:"current,omitempty"`
	Contexts []Context `yaml:"contexts"`
}

// Path is where the file is: $REMUDA_CONFIG, or remuda/config.yaml in $XDG_CONFIG_HOME or ~/.config.
func Path(getenv func(string) string) (string, error) {
	if path := getenv("REMUDA_CONFIG"); path != "" {
		return path, nil
	}
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" && getenv("HOME") != "" {
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	if !filepath.IsAbs(dir) {
		return "", errors.New("find the contexts: neither REMUDA_CONFIG, XDG_CONFIG_HOME nor HOME has an absolute path")
	}
	return filepath.Join(dir, "remuda", "config.yaml"), nil
}

// Load reads the file. One that does not exist is empty.
func Load(path string) (File, error) {
	var file File
	data, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return file, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return file, &failure.Error{Code: failure.Failed, Doing: "read contexts of " + path, Err: err,
			Remedy: "Correct the file, or move it away and run `remuda login` again."}
	}
	return file, file.validate(path)
}

// read refuses a file that other users can read: it leads to keys and tokens.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failReading(path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, failReading(path, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, &failure.Error{Code: failure.Failed, Doing: "read contexts",
			Err: fmt.Errorf("other users can read or change %s (mode %04o)", path, mode), Remedy: "chmod 600 " + path}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return data, failReading(path, err)
}

func failReading(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return failure.Of("read contexts of "+path, err)
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// CheckName refuses what cannot be the name of a context.
func CheckName(name string) error {
	if !contextName.MatchString(name) {
		return failure.Misused("%q cannot be the name of a context: write 1 to 63 of a-z A-Z 0-9 . _ -, a letter or a digit first", name)
	}
	return nil
}

func (f File) validate(path string) error {
	for i, c := range f.Contexts {
		err := cmp.Or(CheckName(c.Name), c.Validate())
		if err == nil && slices.ContainsFunc(f.Contexts[:i], func(o Context) bool { return o.Name == c.Name }) {
			err = fmt.Errorf("the name %s is there twice", c.Name)
		}
		if err != nil {
			return &failure.Error{Code: failure.Failed, Doing: fmt.Sprintf("read context %d of %s", i+1, path), Err: err,
				Remedy: "Correct the file, or `remuda login` again."}
		}
	}
	return nil
}

// Save writes the file, as a whole or not at all.
func (f File) Save(path string) error {
	data, err := yaml.Marshal(f)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), dirMode)
	}
	if err == nil {
		err = safefile.Replace(path, data, fileMode, false)
	}
	return failure.Of("write contexts", err)
}

// Find is the context of a name; an empty name is the current one. False: no name was given, and none is current.
func (f File) Find(name string) (Context, bool, error) {
	wanted := cmp.Or(name, f.Current)
	if wanted == "" {
		return Context{}, false, nil
	}
	i := f.index(wanted)
	if i < 0 {
		return Context{}, false, noSuch(wanted)
	}
	return f.Contexts[i], true, nil
}

func noSuch(name string) error {
	return &failure.Error{Code: failure.NotFound, Err: fmt.Errorf("there is no context %s", name),
		Remedy: "`remuda context list` shows those that there are, and `remuda login` adds one."}
}

func (f File) index(name string) int {
	return slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
}

// Put adds a context, or replaces the one of its name, and makes it the current one.
func (f *File) Put(c Context) {
	if i := f.index(c.Name); i >= 0 {
		f.Contexts[i] = c
	} else {
		f.Contexts = append(f.Contexts, c)
	}
	f.Current = c.Name
}

// Use makes a context the current one.
func (f *File) Use(name string) error {
	if f.index(name) < 0 {
		return noSuch(name)
	}
	f.Current = name
	return nil
}

// Delete takes a context out. If it was the current one, none is.
func (f *File) Delete(name string) error {
	i := f.index(name)
	if i < 0 {
		return noSuch(name)
	}
	f.Contexts = slices.Delete(f.Contexts, i, i+1)
	if f.Current == name {
		f.Current = ""
	}
	return nil
}
