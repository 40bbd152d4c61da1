// Package telemetry holds what both daemons report about themselves: their version, their metrics and the
// root of their logs. Everything may be measured, so it knows nothing but the words of lifecycle.
package telemetry

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version and Commit are set by the linker: -ldflags "-X
// github.com/remuda-ci/remuda/internal/telemetry.Version=…".
var (
	Version = "dev"
	Commit  = ""
)

// VersionLine is what `program version` prints: version, commit, Go version and platform.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s (commit %s, %s, %s/%s)",
		program, Version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit falls back on what the go command stamps when the linker was not given one.
func commit() string {
	if Commit != "" {
		return Commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return revision + modified
}
