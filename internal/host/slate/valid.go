package slate

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Validate says what is wrong with the plan: a mistake in it would delete or kill what is not a run's.
func (p Plan) Validate() error {
	var errs []error
	if p.UID <= 0 || p.GID <= 0 {
		errs = append(errs, fmt.Errorf("user %q has uid %d and gid %d: runs need a user other than root", p.User, p.UID, p.GID))
	}
	if p.User == "" || strings.ContainsAny(p.User, "/\x00") || strings.HasPrefix(p.User, ".") {
		errs = append(errs, fmt.Errorf("%q is no user name", p.User))
	}
	paths := append(p.places(), p.Baseline, p.Skeleton)
	for _, dir := range p.Empty {
		paths = append(paths, dir.Path)
	}
	for _, m := range p.Mirrors {
		paths = append(paths, m.From)
	}
	for _, path := range append(paths, p.Unchanged...) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			errs = append(errs, fmt.Errorf("%q is no absolute path without detours", path))
		}
	}
	for _, pattern := range slices.Concat(p.Units, p.OwnUnits) {
		// systemd's patterns are those of fnmatch, of which path.Match knows the part that counts here.
		if _, err := path.Match(pattern, ""); err != nil || strings.HasPrefix(pattern, "*") || pattern == "" {
			errs = append(errs, fmt.Errorf("%q is no pattern of names that begin alike", pattern))
		}
	}
	if p.Hook != "" && p.HookLimit <= 0 {
		errs = append(errs, fmt.Errorf("%s has no time limit", p.Hook))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("read plan of the clean slate: %w", err)
	}
	return nil
}
