package config

import (
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

func between(at strictyaml.Place, v, least, most time.Duration) {
	if v < least || v > most {
		at.Errorf("is %s; write a duration from %s to %s", v, least, most)
	}
}

func number(at strictyaml.Place, v, least, most int) {
	if v < least || v > most {
		at.Errorf("is %d; write a number from %d to %d", v, least, most)
	}
}

func few(at strictyaml.Place, n int) {
	if n > maxEntries {
		at.Errorf("has %d entries; write at most %d", n, maxEntries)
	}
}

// file checks the path of a file. A relative one would depend on where the
// daemon was started, and hosts are started elsewhere.
func file(at strictyaml.Place, path string) {
	switch {
	case path == "":
		at.Errorf("is missing; write an absolute path")
	case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
		at.Errorf("is %.80q; write an absolute path", path)
	}
}

// words checks a list of names. No name may be there twice.
func words(at strictyaml.Place, list []string, pattern *regexp.Regexp, what string) {
	few(at, len(list))
	for i, w := range list {
		if !pattern.MatchString(w) {
			at.Item(i).Errorf("is %.80q; write %s", w, what)
		}
	}
	distinct(at, list)
}

func distinct[T comparable](at strictyaml.Place, list []T) {
	seen := map[T]bool{}
	for i, v := range list {
		if seen[v] {
			at.Item(i).Errorf("is here twice; remove one")
		}
		seen[v] = true
	}
}

func address(at strictyaml.Place, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 0 || n > 65535 {
		at.Errorf("is %.80q; write host:port such as 127.0.0.1:7443", addr)
	}
}

// anyPort reports whether an address asks for any free port.
func anyPort(addr string) bool { return strings.HasSuffix(addr, ":0") }
