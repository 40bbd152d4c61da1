//go:build testhost

package reset_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/host/reset"
)

// newDockerHost is a host on which docker was not started since the boot. When the test ends it
// does not run, and its socket and its storage are gone.
func newDockerHost(t *testing.T) reset.Plan {
	t.Helper()
	for _, path := range []string{"/usr/bin/docker", "/run/docker.sock"} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("this needs docker as the image has it, with its socket: %v", err)
		}
	}
	if began := sh(t, "systemctl show --value -p InactiveExitTimestampMonotonic docker.service"); began != "0" {
		t.Fatal("this needs a machine on which docker was not started since the boot")
	}
	// systemd-nspawn protects /proc/sys, where docker writes what concerns its own network namespace. The root file
	// system of a container is one of layers, on which docker could not lay its own.
	sh(t, "mount -o remount,bind,rw /proc/sys; mkdir -p /var/lib/docker; mount -t tmpfs docker /var/lib/docker")
	t.Cleanup(func() {
		undo(t, `systemctl stop docker.socket docker.service containerd.service; rm /run/docker.sock
			umount /var/lib/docker; rm -f /etc/docker/key.json; mount -o remount,bind,ro /proc/sys`)
	})
	return newSmallHost(t)
}

// useDocker makes one of each: an image of the machine's own programs, and a container, which is always started again, with
// a network, a named volume and another, and a port.
const useDocker = `programs="/bin/sh /bin/sleep /bin/touch"
tar -ch $programs $(ldd $programs | grep -o '/[^ :]*\.so[^ ]*' | sort -u) 2>/dev/null | docker import - slate:1
docker network create slate
docker run -d --name slate --restart always --network slate -p 4270:80 -v slate:/named -v /unnamed slate:1 /bin/sh -c 'touch /named/x; sleep 1000'
docker create --name unstarted slate:1 /bin/sh
docker volume create unused`

// useSwarm makes a swarm with a service, which starts containers that are deleted.
const useSwarm = `docker swarm init --listen-addr 127.0.0.1 --advertise-addr 127.0.0.1
docker service create --detach --no-resolve-image --name slate slate:1 /bin/sleep 1000`

// The real docker: what a run has made is gone, and images stay. Its daemon is not started by those who only look.
func TestDocker(t *testing.T) {
	p := newDockerHost(t)
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	if state := sh(t, "systemctl is-active docker.service || true"); state != "inactive" {
		t.Fatalf("docker is %s of the clean-up", state)
	}

	sh(t, useDocker)
	var findings *reset.Findings
	if err := reset.Verify(t.Context(), p); !errors.As(err, &findings) {
		t.Fatalf("error %v", err)
	}
	said := strings.Join(findings.All, "\n")
	for _, want := range []string{
		"docker has a container", "docker has a network", "docker has a volume slate", "docker has a volume unused",
		`("docker-proxy") of docker.service listens at tcp 0.0.0.0:4270`, `overlay "overlay" is mounted at "/var/lib/docker/overlay2/`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no finding with %q in:\n%s", want, said)
		}
	}

	sh(t, useSwarm)
	start := time.Now()
	check(t, clean(t, p))
	cleaned := time.Now()
	check(t, reset.Verify(t.Context(), p))
	t.Logf("clean %s, check %s", cleaned.Sub(start), time.Since(cleaned))
	for _, list := range []string{"ps -aq", "volume ls -q", "network ls -q --filter type=custom"} {
		if left := sh(t, "docker "+list); left != "" {
			t.Errorf("docker %s: %s", list, left)
		}
	}
	if images := sh(t, "docker images --format '{{.Repository}}:{{.Tag}}'"); images != "slate:1" {
		t.Errorf("images %q", images)
	}
}
