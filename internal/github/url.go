package github

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// parseURL checks the base URL of an API and ends it with a slash, without
// which the last part of its path would be replaced by that of a call.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// url.Parse quotes what it was given, which may hold a password.
		return nil, errors.New("the API's URL cannot be parsed; write https://api.github.com or https://HOST/api/v3")
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("the API's URL is not of the form https://HOST/PATH; write https://api.github.com or https://HOST/api/v3")
	case u.User != nil:
		return nil, errors.New("the API's URL holds credentials; configure the token instead")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("the API's URL %s would send the token in plain text; write https", u)
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// webURL is where people find the repositories of an API, and what runners are registered with:
// api.github.com serves those of github.com, an Enterprise Server its own beside /api/v3.
func webURL(base *url.URL) string {
	web := *base
	web.Host = strings.TrimPrefix(base.Host, "api.")
	if web.Host != base.Host && web.Host != "github.com" && !strings.HasSuffix(web.Host, ".ghe.com") {
		web.Host = base.Host
	}
	web.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/api/v3")
	return web.String()
}

var repositoryName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,39})/([A-Za-z0-9._-]{1,100})$`)

// splitRepository refuses what would lead to another path of the API.
func splitRepository(repository string) (owner, name string, err error) {
	m := repositoryName.FindStringSubmatch(repository)
	if m == nil || m[2] == "." || m[2] == ".." {
		return "", "", fmt.Errorf("%q is not a repository; write owner/name", repository)
	}
	return m[1], m[2], nil
}
