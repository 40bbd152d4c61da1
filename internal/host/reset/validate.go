package reset

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Validate checks the plan. A mistake in it would delete or kill what does not belong to a run.
func (p Plan) Validate() error {
	var errs []error
	if p.UID <= 0 || p.GID <= 0 {
		errs = append(errs, fmt.Errorf("user %q has uid %d and gid %d: runs need a user other than root", p.User, p.UID, p.GID))
	}
	if p.User == "" || strings.ContainsAny(p.User, "/\x00") || strings.HasPrefix(p.User, ".") {
		errs = append(errs, fmt.Errorf("%q is not a user name", p.User))
	}
	paths := append(p.runDirs(), p.Baseline, p.Skeleton)
	for _, dir := range p.Empty {
		paths = append(paths, dir.Path)
	}
	for _, m := range p.Mirrors {
		paths = append(paths, m.From)
	}
	for _, path := range append(paths, p.Unchanged...) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			errs = append(errs, fmt.Errorf("%q is not a clean absolute path", path))
		}
	}
	for _, pattern := range slices.Concat(p.Units, p.OwnUnits) {
		// systemd's patterns are those of fnmatch. path.Match knows the part of them that counts here.
		if _, err := path.Match(pattern, ""); err != nil || strings.HasPrefix(pattern, "*") || pattern == "" {
			errs = append(errs, fmt.Errorf("%q is not a pattern of names with a common prefix", pattern))
		}
	}
	if p.Hook != "" && p.HookLimit <= 0 {
		errs = append(errs, fmt.Errorf("%s has no time limit", p.Hook))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("invalid reset plan: %w", err)
	}
	return nil
}
