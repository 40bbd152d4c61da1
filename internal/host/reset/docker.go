package reset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/retry"
)

// dockerLimit is how long one command of docker may take. To delete a large volume takes the longest.
const dockerLimit = time.Minute

// dockerList is a list of what docker keeps of a run, and how that is deleted.
type dockerList struct {
	kind         string
	list, remove []string
}

// dockerLists are the kinds of objects that are deleted, beside images. Objects are deleted by name and not by prune. That leaves
// named volumes in place, at least without a flag that older versions refuse.
var dockerLists = []dockerList{
	{"container", []string{"ps", "-aq"}, []string{"rm", "-f", "-v"}},
	{"network", []string{"network", "ls", "-q", "--filter", "type=custom"}, []string{"network", "rm"}},
	{"volume", []string{"volume", "ls", "-q"}, []string{"volume", "rm", "-f"}},
}

// Where these stand in dockerLists.
const (
	dockerContainers = iota
	dockerNetworks
)

// dockerUnit is docker's daemon. systemd starts it when something first writes to its socket.
const dockerUnit = "docker.service"

// dockerDir is where docker keeps everything, unless dockerConfig names another directory.
const (
	dockerDir    = "/var/lib/docker"
	dockerConfig = "/etc/docker/daemon.json"
)

// dockerStores are where docker keeps the objects that a new daemon would have again: a directory for each, below its own.
var dockerStores = []string{"containers", "volumes"}

// dockerRoot is docker's directory. Images with a volume of its own for docker have another one than others. A file that docker cannot read
// either is an error.
func (p Plan) dockerRoot() (string, error) {
	data, err := os.ReadFile(p.at(dockerConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return p.at(dockerDir), nil
	}
	config := struct {
		Root string `json:"data-root"`
	}{dockerDir}
	if err == nil && len(bytes.TrimSpace(data)) > 0 { // docker takes an empty one for none
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return "", fmt.Errorf("look for docker: read %s: %w", dockerConfig, err)
	}
	return p.at(config.Root), nil
}

// hasDocker reports whether docker may have objects. Any command of docker starts its daemon, which takes a second, so none
// is run on a host where no daemon was started since the boot and no earlier one has left anything. Without its socket
// there is no daemon, and all containers are made by the daemon.
func (p Plan) hasDocker(ctx context.Context, m manager) (bool, error) {
	if p.Docker == "" {
		return false, nil
	}
	for _, path := range []string{p.Docker, p.at("/run/docker.sock")} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("look for docker: %w", err)
		}
	}
	daemon, err := m.unit(ctx, dockerUnit)
	if err != nil {
		return false, fmt.Errorf("look for docker: %w", err)
	}
	if daemon.fragment == "" || daemon.began > 0 { // a daemon that is not a unit runs as long as its socket exists
		return true, nil
	}
	if stored, err := p.dockerStored(); err != nil || stored {
		return stored, err
	}
	return p.imagesUnsettled()
}

// dockerUsed reports whether a daemon has ever run on this machine.
func (p Plan) dockerUsed() (bool, error) {
	root, err := p.dockerRoot()
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for docker: %w", err)
	}
	return len(entries) > 0, nil
}

// dockerStored reports whether a daemon has left containers or volumes.
func (p Plan) dockerStored() (bool, error) {
	root, err := p.dockerRoot()
	if err != nil {
		return false, err
	}
	for _, dir := range dockerStores {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look for docker: %w", err)
		}
		if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
			return true, nil
		}
	}
	return false, nil
}

// dockerObjects lists the names of the objects that docker has of each of dockerLists.
func (p Plan) dockerObjects(ctx context.Context, m manager) ([][]string, error) {
	found := make([][]string, len(dockerLists))
	if has, err := p.hasDocker(ctx, m); err != nil || !has {
		return found, err
	}
	errs := make([]error, len(dockerLists))
	var wait sync.WaitGroup
	for i, l := range dockerLists {
		wait.Go(func() { found[i], errs[i] = p.docker(ctx, l.list...) })
	}
	wait.Wait()
	return found, errors.Join(errs...)
}

// removeDockerObjects deletes all objects of docker except images.
func (p Plan) removeDockerObjects(ctx context.Context, m manager) error {
	found, err := p.dockerObjects(ctx, m)
	if err == nil && len(found[dockerNetworks]) > 0 {
		var left bool
		if left, err = p.leaveSwarm(ctx); left && err == nil {
			found, err = p.dockerObjects(ctx, m)
		}
	}
	if err != nil {
		return err
	}
	return p.removeListed(ctx, found)
}

// leaveSwarm leaves a swarm, if docker is in one: a swarm starts deleted containers again, and it listens. A swarm has a
// network.
func (p Plan) leaveSwarm(ctx context.Context) (left bool, err error) {
	networks, err := p.docker(ctx, "network", "ls", "-q", "--filter", "scope=swarm")
	if err != nil || len(networks) == 0 {
		return false, err
	}
	_, err = p.docker(ctx, "swarm", "leave", "--force")
	return true, err
}

// removeListed deletes the listed objects of each of dockerLists.
func (p Plan) removeListed(ctx context.Context, found [][]string) (err error) {
	for i, l := range dockerLists {
		names := found[i]
		if i != dockerContainers && len(found[dockerContainers]) > 0 { // some went with the containers
			if names, err = p.docker(ctx, l.list...); err != nil {
				return err
			}
		}
		if err := p.removeKind(ctx, l, names); err != nil {
			return err
		}
	}
	return nil
}

const (
	// removeTries is how often a deletion is tried.
	removeTries = 5
	// removePause is between two tries.
	removePause = 200 * time.Millisecond
)

// removeKind deletes objects of a kind. docker fails when one of them is just going away by itself, as a container that was
// run with --rm does and those of a swarm do. Then the rest is tried again.
func (p Plan) removeKind(ctx context.Context, l dockerList, names []string) error {
	for try := 1; len(names) > 0; try++ {
		_, err := p.docker(ctx, slices.Concat(l.remove, names)...)
		if err == nil || try == removeTries {
			return err
		}
		if err := retry.Sleep(ctx, removePause); err != nil {
			return err
		}
		if names, err = p.docker(ctx, l.list...); err != nil {
			return err
		}
	}
	return nil
}

// docker runs a command of docker and returns the words of its output.
func (p Plan) docker(ctx context.Context, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Docker, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = script.Environment(), "/", time.Second
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr[:min(len(exit.Stderr), 500)])))
		}
		return nil, fmt.Errorf("run docker %s: %w", strings.Join(args[:min(len(args), 3)], " "), err)
	}
	return strings.Fields(string(out)), nil
}
