package config

import (
	"net"
	"net/url"
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

// fileIfAny checks the path of a file that may be left out.
func fileIfAny(at strictyaml.Place, path string) {
	if path != "" {
		file(at, path)
	}
}

// baseURL checks a URL of https, or of http on this machine. What says what it should be, and what to write;
// plaintext says what is wrong with http to another machine, and allows it if it is empty.
func baseURL(at strictyaml.Place, raw, what, plaintext string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http"):
		at.Errorf("is not %s", what)
	case u.Scheme == "http" && plaintext != "" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")):
		at.Errorf("%s; write https", plaintext)
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
