// Package cache has the words for caches: directories of a job that outlive the run.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a pool may declare.
const (
	MaxCaches   = 8   // of a pool
	MaxPaths    = 8   // of a cache
	MaxPath     = 256 // bytes of a path
	MaxPatterns = 16  // of a cache's From
	MaxPattern  = 255 // bytes of a pattern; the longest branch that GitHub has

	MinSize = 1 << 20  // bytes
	MaxSize = 16 << 40 // bytes

	DefaultKeep = 7 * 24 * time.Hour
	MinKeep     = time.Hour
	MaxKeep     = 30 * 24 * time.Hour
)

// Scope says whose runs share a cache.
type Scope string

// The scopes.
const (
	ScopeRepository Scope = "repository" // those of one repository
	ScopeOwner      Scope = "owner"      // those of all repositories of one owner
)

// Scopes lists every scope, the default first.
var Scopes = []Scope{ScopeRepository, ScopeOwner}

// Holds says what a cache is of.
type Holds string

// What a cache may hold.
const (
	HoldsFiles Holds = "files" // what jobs leave in directories that the pool names
	HoldsTools Holds = "tools" // the tool cache of the runner, which setup actions fill
	// HoldsActions is the archives of the actions that jobs use. The host fetches them, and jobs can only read them.
	HoldsActions Holds = "actions"
	// HoldsGit is a mirror of the repository. The host fetches it, and jobs can only read it.
	HoldsGit Holds = "git"
	// HoldsDocker is docker's images and the layers of its builds. Only a privileged pool has it, and no other cache.
	HoldsDocker Holds = "docker"
)

// AllHolds lists all of them, the default first.
var AllHolds = []Holds{HoldsFiles, HoldsTools, HoldsActions, HoldsGit, HoldsDocker}

// Where jobs see the caches that are in a place of their own.
const (
	ToolsPath   = "~/hostedtoolcache"
	ActionsPath = "~/actionarchivecache"
	GitPath     = "~/gitmirror"
)

// Spec is a cache as a pool declares it.
type Spec struct {
	// Name is 1 to 32 of a-z, 0-9 and -, a letter first. It is unique in its pool.
	Name string `json:"name"`
	// Holds is HoldsFiles if it is empty.
	Holds Holds `json:"holds,omitempty"`
	// Paths are 1 to 8 directories below the home of the runner's user, written ~/go/pkg/mod. None is inside another of the pool. Without files it has none:
	// see Directories.
	Paths []string `json:"paths"`
	// Size is the most that the cache may hold, in bytes.
	Size uint64 `json:"size"`
	// Scope is ScopeRepository if it is empty.
	Scope Scope `json:"scope,omitempty"`
	// From are the patterns of the branches whose runs may write; none: the branches that GitHub protects.
	From []string `json:"from,omitempty"`
	// Keep is how long the cache is kept after its last use; 0: DefaultKeep.
	Keep time.Duration `json:"keep,omitempty"`
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Validate returns what is wrong with a cache by itself: an error that names the key and the rule. What is wrong between the caches of a pool, ValidateAll finds.
func (s Spec) Validate() error {
	switch {
	case !nameForm.MatchString(s.Name):
		return fmt.Errorf("name %.40q is not 1 to 32 of a-z, 0-9 and -, a letter first", s.Name)
	case s.Holds != "" && !slices.Contains(AllHolds, s.Holds):
		return fmt.Errorf("holds %.40q is not one of %s", s.Holds, strings.Trim(fmt.Sprint(AllHolds), "[]"))
	case s.Holds == HoldsDocker && len(s.Paths) > 0:
		return fmt.Errorf("paths has %d directories, and a cache that holds docker has none: leave them out", len(s.Paths))
	case s.ownPath() != "" && len(s.Paths) > 0:
		return fmt.Errorf("paths has %d directories, and a cache that holds %s is in %s: leave them out", len(s.Paths), s.Holds, s.ownPath())
	case s.ownPath() == "" && s.Holds != HoldsDocker && (len(s.Paths) == 0 || len(s.Paths) > MaxPaths):
		return fmt.Errorf("paths has %d directories, want 1 to %d", len(s.Paths), MaxPaths)
	case s.Size < MinSize || s.Size > MaxSize:
		return fmt.Errorf("size %d is not between %d and %d bytes", s.Size, MinSize, uint64(MaxSize))
	case s.Scope != "" && !slices.Contains(Scopes, s.Scope):
		return fmt.Errorf("scope %.40q is neither %s nor %s", s.Scope, ScopeRepository, ScopeOwner)
	case s.Holds == HoldsGit && s.Scope == ScopeOwner:
		return fmt.Errorf("scope is %s, and a cache that holds %s is the mirror of one repository: write %s", s.Scope, s.Holds, ScopeRepository)
	case s.Keep != 0 && (s.Keep < MinKeep || s.Keep > MaxKeep):
		return fmt.Errorf("keep %s is not between %s and %s", s.Keep, MinKeep, MaxKeep)
	case len(s.From) > MaxPatterns:
		return fmt.Errorf("from has %d patterns, want at most %d", len(s.From), MaxPatterns)
	}
	for _, p := range s.Paths {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	for _, p := range s.From {
		if p == "" || len(p) > MaxPattern || !printable(p) {
			return fmt.Errorf("from has the pattern %.40q, want 1 to %d printable bytes", p, MaxPattern)
		}
	}
	return apart(s.Paths)
}

// ValidateAll returns what is wrong with the caches of a pool, taken together and each by itself.
func ValidateAll(specs []Spec) error {
	if len(specs) > MaxCaches {
		return fmt.Errorf("there are %d caches, want at most %d", len(specs), MaxCaches)
	}
	if i := slices.IndexFunc(specs, func(s Spec) bool { return s.Holds == HoldsDocker }); i >= 0 && len(specs) > 1 {
		return fmt.Errorf("cache %.40q holds docker, and jobs that can use docker are root: it is the only cache of its pool", specs[i].Name)
	}
	var names, paths []string
	for _, s := range specs {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("cache %.40q: %w", s.Name, err)
		}
		if slices.Contains(names, s.Name) {
			return fmt.Errorf("cache %q: another one has the same name", s.Name)
		}
		names, paths = append(names, s.Name), append(paths, s.Directories()...)
	}
	return apart(paths)
}

// checkPath wants a clean path below the home. Others, such as the runner's own directories, are the host's to refuse.
func checkPath(p string) error {
	below, ok := strings.CutPrefix(p, "~/")
	switch {
	case !ok || below == "":
		return fmt.Errorf("path %.80q does not begin with ~/ and a name", p)
	case len(p) > MaxPath:
		return fmt.Errorf("path %.80q is longer than %d bytes", p, MaxPath)
	case path.Clean("/"+below) != "/"+below:
		return fmt.Errorf("path %.80q is not clean: write it without .., . and double or final slashes", p)
	case !printable(p) || strings.ContainsAny(below, `~:,\`):
		return fmt.Errorf("path %.80q has a character that mounts cannot have: ~ : , \\ or one that does not print", p)
	}
	return nil
}

// apart returns an error if one path is another, or inside it.
func apart(paths []string) error {
	for i, p := range paths {
		for j, q := range paths {
			if i != j && strings.HasPrefix(p+"/", q+"/") {
				return fmt.Errorf("path %q is inside the path %q of a cache", p, q)
			}
		}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// Directories are what jobs see of the cache, written ~/go/pkg/mod.
func (s Spec) Directories() []string {
	if own := s.ownPath(); own != "" {
		return []string{own}
	}
	return s.Paths
}

// ownPath is where a cache is that has a place of its own; else empty.
func (s Spec) ownPath() string {
	switch s.Holds {
	case HoldsTools:
		return ToolsPath
	case HoldsActions:
		return ActionsPath
	case HoldsGit:
		return GitPath
	}
	return ""
}

// ScopeOf is the scope, with the default for an empty one.
func (s Spec) ScopeOf() Scope {
	if s.Scope == "" {
		return ScopeRepository
	}
	return s.Scope
}

// KeepFor is how long the cache is kept after its last use.
func (s Spec) KeepFor() time.Duration {
	if s.Keep == 0 {
		return DefaultKeep
	}
	return s.Keep
}

// Docker is the cache among those of a pool that holds docker.
func Docker(specs []Spec) (Spec, bool) {
	for _, s := range specs {
		if s.Holds == HoldsDocker {
			return s, true
		}
	}
	return Spec{}, false
}

// KeyLength is the length of a key, in bytes.
const KeyLength = 16

var keyForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Key names the cache of a repository ("owner/name", in any case) in reports, records and messages, and on a host. A reader who does not
// know the repository and the cache learns neither from it. It is empty if the repository is not known: for an owner alone ("owner"), as of a
// job-scoped host whose job GitHub chooses among all of them, there is only a cache of the owner.
func (s Spec) Key(repository string) string {
	owner, _, whole := strings.Cut(strings.ToLower(repository), "/")
	of := strings.ToLower(repository)
	switch {
	case owner == "":
		return ""
	case s.ScopeOf() == ScopeOwner:
		of = owner
	case !whole:
		return ""
	}
	sum := sha256.Sum256([]byte(of + "\x00" + s.Name))
	return hex.EncodeToString(sum[:KeyLength/2])
}

// Keys are the keys that a repository has of the caches of a pool, in their order.
func Keys(specs []Spec, repository string) []string {
	var keys []string
	for _, s := range specs {
		if key := s.Key(repository); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// OnHost is a cache in the files that tell a host's agent of it. Who may write is not among it: controld says that of each run.
type OnHost struct {
	Name    string   `json:"name" yaml:"name"`
	Holds   Holds    `json:"holds,omitempty" yaml:"holds,omitempty"` // empty: files
	Paths   []string `json:"paths,omitempty" yaml:"paths,omitempty"`
	SizeMiB uint64   `json:"size_mib" yaml:"size_mib"`
	Scope   Scope    `json:"scope" yaml:"scope"`
	Keep    string   `json:"keep" yaml:"keep"` // such as 168h0m0s
}

// OnHosts are the caches of a pool in the form for its hosts, in the pool's order.
func OnHosts(specs []Spec) []OnHost {
	var list []OnHost
	for _, s := range specs {
		holds := s.Holds
		if holds == HoldsFiles {
			holds = "" // an older agent knows no other, and refuses the key
		}
		list = append(list, OnHost{Name: s.Name, Holds: holds, Paths: s.Paths, SizeMiB: s.Size >> 20, Scope: s.ScopeOf(), Keep: s.KeepFor().String()})
	}
	return list
}
