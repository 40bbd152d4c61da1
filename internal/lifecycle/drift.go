package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Drift says what becomes of a host that was launched from an older version of its pool's launch template
// than the current one: another image, other user data, other security groups.
type Drift string

// The rules for drift. Leave: a host whose run is over is ended instead of
// pooled, and those in the pool are retired gradually.
const (
	DriftLeave  Drift = "leave"
	DriftIgnore Drift = "ignore"
)

// Drifts lists every rule for drift, the default first.
var Drifts = []Drift{DriftLeave, DriftIgnore}

// agesAt is when the host is as old as its pool allows; zero: never.
func (r Record) agesAt(p Policy) time.Time {
	launched := r.LaunchedAt
	if launched.IsZero() {
		launched = r.CreatedAt
	}
	if p.MaxAge <= 0 || launched.IsZero() {
		return time.Time{}
	}
	return launched.Add(p.MaxAge)
}

// archARM is the architecture whose version comes second where a pool has two templates, as EC2 spells it.
const archARM = "arm64"

// Drifted says that the host was launched from an older version of its launch
// template than current, or is "".
func (r Record) Drifted(current string) string {
	if !r.Outdated(current) {
		return ""
	}
	return fmt.Sprintf("launched from version %s of its pool's launch template, which is at version %s by now", r.TemplateVersion, current)
}

// Outdated reports whether the host was launched from an older version of its launch template than current. A
// pool with templates for two architectures has a version of each, as in 7/5, and a host is as old as its
// own. What is not known, or is no number, is not older.
func (r Record) Outdated(current string) bool {
	if r.TemplateVersion == "" || current == "" {
		return false
	}
	had, has := strings.Split(r.TemplateVersion, "/"), strings.Split(current, "/")
	if r.Arch == archARM && len(had) != len(has) {
		return true // its architecture has another template now
	}
	own := func(versions []string) (uint64, error) {
		if r.Arch == archARM {
			return strconv.ParseUint(versions[len(versions)-1], 10, 63)
		}
		return strconv.ParseUint(versions[0], 10, 63)
	}
	was, err := own(had)
	is, isErr := own(has)
	return err == nil && isErr == nil && was < is
}
