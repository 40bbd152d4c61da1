package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// environment is what the jobs get: the project's source, the proxy that counts, and how this machine reaches the registries. Jobs have a home of
// their own, so they read no settings of this user.
func environment(ctx context.Context, source, proxy string) (map[string]string, error) {
	if err := checkNode(ctx); err != nil {
		return nil, err
	}
	env := map[string]string{"EXAMPLE_SOURCE": source}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "npm_config_https_proxy", "npm_config_proxy"} {
		env[name] = proxy
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"} {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	settings, err := output(ctx, "go", append([]string{"env", "-json"}, ofGo...)...)
	if err != nil {
		return nil, err
	}
	var values map[string]string
	if err := json.Unmarshal([]byte(settings), &values); err != nil {
		return nil, fmt.Errorf("read what go env says: %w", err)
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	maps.Copy(env, values)
	for name, key := range ofNPM {
		value, err := output(ctx, "npm", "config", "get", key)
		if err != nil {
			return nil, err
		}
		if value != "null" && value != "undefined" {
			env[name] = value
		}
	}
	return env, nil
}

// ofGo are the settings by which go reaches modules.
var ofGo = []string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE", "GOFLAGS"}

// ofNPM are those of npm, the file with the user's among them.
var ofNPM = map[string]string{"npm_config_registry": "registry", "npm_config_cafile": "cafile", "npm_config_userconfig": "userconfig"}

// newNode is an expression that is true of a Node.js that can build the web app.
const newNode = `const [major, minor] = process.versions.node.split(".").map(Number); major > 20 || major == 20 && minor >= 19`

func checkNode(ctx context.Context) error {
	is, err := output(ctx, "node", "-p", newNode)
	if err == nil && is != "true" {
		err = errors.New("the demo needs Node.js 20.19 or later, which the web app is built with")
	}
	return err
}

// output is what a program prints.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the demo needs Go and Node.js with npm: %s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// caches of the demo's pool: what Go and npm keep below the home of jobs.
const caches = `
pools:
  default:
    standby: clean
    caches:
      - name: go
        paths: [~/go/pkg/mod, ~/.cache/go-build]
        size_mib: 2048
        from: [main]
      - name: npm
        paths: [~/.npm]
        size_mib: 1024
        from: [main]
`

// configuration is that of the system, with the environment of its jobs.
func configuration(environment map[string]string) string {
	var b strings.Builder
	b.WriteString("\ncompute:\n  process:\n    environment:\n")
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(&b, "      %s: %q\n", name, environment[name])
	}
	return b.String() + caches
}
