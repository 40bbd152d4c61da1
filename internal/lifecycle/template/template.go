// Package template compares the versions of the launch templates of a pool.
package template

import (
	"strconv"
	"strings"
)

// archARM is the architecture whose version comes second where a pool has two templates, as EC2 spells it.
const archARM = "arm64"

// Outdated reports whether a host of an architecture, which was launched from version had, was launched from an older one than
// current. A pool with templates for two architectures has a version of each, as in 7/5, and a host is as old as its
// own. What is not known, or is no number, is not older.
func Outdated(arch, had, current string) bool {
	if had == "" || current == "" {
		return false
	}
	was, is := strings.Split(had, "/"), strings.Split(current, "/")
	if arch == archARM && len(was) != len(is) {
		return true // its architecture has another template now
	}
	own := func(versions []string) (uint64, error) {
		if arch == archARM {
			return strconv.ParseUint(versions[len(versions)-1], 10, 63)
		}
		return strconv.ParseUint(versions[0], 10, 63)
	}
	old, err := own(was)
	newest, newestErr := own(is)
	return err == nil && newestErr == nil && old < newest
}
