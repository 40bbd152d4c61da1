package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// The scripts of actions/runner, as far as they matter: two start the listener.
const (
	// configScript is without the checks for the libraries of .NET, which the stand-in does not need
	// (actions/runner 2.336, src/Misc/layoutroot/config.sh).
	configScript = `#!/bin/bash
# Configures the runner, or with "remove" as its first word takes the configuration away.
if [[ $(id -u) -eq 0 && -z "$RUNNER_ALLOW_RUNASROOT" ]]; then
    echo "Must not run with sudo"
    exit 1
fi
here="${BASH_SOURCE[0]}"
[[ "$here" != */* ]] || cd "${here%/*}" || exit 1
source ./env.sh
if [[ "$1" == "remove" ]]; then
    exec ./bin/Runner.Listener "$@"
fi
exec ./bin/Runner.Listener configure "$@"
`
	// envScript keeps a part of the environment for later listeners, and PATH for runsvc.sh (src/Misc/layoutroot/env.sh).
	envScript = `#!/bin/bash
touch .env
for name in LANG JAVA_HOME ANT_HOME M2_HOME ANDROID_HOME ANDROID_SDK_ROOT GRADLE_HOME NVM_BIN NVM_PATH LD_LIBRARY_PATH PERL5LIB; do
    if [[ -n "${!name}" ]] && ! grep -q "^$name=" .env; then
        echo "$name=${!name}" >>.env
    fi
done
echo "$PATH" >.path
`
	// serviceScript stands for what configure generates to install the runner as a service
	// (src/Misc/layoutbin/systemd.svc.sh.template). It does nothing.
	serviceScript = "#!/bin/bash\necho 'This runner cannot be installed as a service.'\nexit 1\n"
	runScript     = `#!/bin/bash
# Runs the runner. As in actions/runner it starts again on exit codes that are worth it, and hides them all.
here="${BASH_SOURCE[0]}"
[[ "$here" != */* ]] || cd "${here%/*}" || exit 1
while :; do
    ./bin/Runner.Listener run "$@"
    code=$?
    case $code in
        2 | 3 | 4) sleep 5 ;;
        *) echo "Exiting runner..."; exit 0 ;;
    esac
done
`
)

// LayOut makes dir look like an unpacked actions/runner whose two programs are binary, the stand-in runner. The programs
// are hard links where the file system allows it, else symbolic links. It may be called again on the same directory.
func LayOut(dir, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	for name, script := range map[string]string{"config.sh": configScript, "env.sh": envScript, "run.sh": runScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			return fmt.Errorf("lay out runner: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, manifestFile), manifest(Version), 0o644); err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	for _, name := range []string{"Runner.Listener", "Runner.Worker"} {
		if err := link(binary, filepath.Join(dir, "bin", name)); err != nil {
			return fmt.Errorf("lay out runner: %w", err)
		}
	}
	return nil
}

// The externals of actions/runner, which are nearly all of its files: several builds of node, each with npm and corepack (2.336,
// src/Misc/externals.sh). Together with the programs they are about 12,000 files.
const (
	nodes        = 4
	nodePackages = 300 // in npm
	packageFiles = 10  // in each of them
)

// LayOutWhole is LayOut with as many files and symbolic links as the real distribution has, for tests of what copies and compares it.
func LayOutWhole(dir, binary string) error {
	if err := LayOut(dir, binary); err != nil {
		return err
	}
	for n := range nodes {
		if err := layOutNode(filepath.Join(dir, "externals", fmt.Sprintf("node%d", 20+n))); err != nil {
			return fmt.Errorf("lay out runner: %w", err)
		}
	}
	return nil
}

// layOutNode makes all files links to one, which is quicker.
func layOutNode(dir string) error {
	source := filepath.Join(dir, "LICENSE")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(source, []byte("'use strict'\n"), 0o644); err != nil {
		return err
	}
	for i := range nodePackages {
		at := filepath.Join(dir, "lib/node_modules/npm/node_modules", fmt.Sprintf("package-%03d", i), "lib")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		for j := range packageFiles {
			if err := link(source, filepath.Join(at, fmt.Sprintf("file-%d.js", j))); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"npm", "npx", "corepack"} {
		err := os.Symlink("../lib/node_modules/npm/node_modules/package-000/lib/file-0.js", filepath.Join(dir, "bin", name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// manifest is what .NET writes beside every program that it builds, as far as it matters: it says the runner's version.
func manifest(version string) []byte {
	return fmt.Appendf(nil, "{\n  \"libraries\": {\n    \"Runner.Listener/%s\": {\n      \"type\": \"project\"\n    }\n  }\n}\n", version)
}

const manifestFile = "bin/Runner.Listener.deps.json"

// SetVersion makes the runner in dir one of another version.
func SetVersion(dir, version string) error {
	path := filepath.Join(dir, manifestFile)
	if err := os.Remove(path); err != nil { // it may be a link to another runner's
		return fmt.Errorf("set version of runner: %w", err)
	}
	return os.WriteFile(path, manifest(version), 0o644)
}

// versionOf is the version of the runner below root.
func versionOf(root string) string {
	text, _ := os.ReadFile(filepath.Join(root, manifestFile)) // without it the runner has its usual version
	if m := versionOfListener.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return Version
}

var versionOfListener = regexp.MustCompile(`"Runner\.Listener/([^"]+)"`)

func link(binary, at string) error {
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(binary, at) == nil {
		return nil
	}
	return os.Symlink(binary, at)
}
