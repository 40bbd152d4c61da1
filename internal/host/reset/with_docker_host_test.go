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

// imagesNow are the names of all images, and then the ids of those without one.
func imagesNow(t *testing.T) string {
	t.Helper()
	return sh(t, "docker images --format '{{.Repository}}:{{.Tag}}' | sort | tr '\\n' ' '")
}

// The real docker: what a run has made is gone, its images too. Its daemon is not started by those who only look.
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
		`docker has the image "slate:1" of a run`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no finding with %q in:\n%s", want, said)
		}
	}

	sh(t, useSwarm)
	keeping := p
	keeping.KeepImages = true
	start := time.Now()
	check(t, clean(t, keeping))
	cleaned := time.Now()
	check(t, reset.Verify(t.Context(), keeping))
	t.Logf("clean %s, check %s", cleaned.Sub(start), time.Since(cleaned))
	for _, list := range []string{"ps -aq", "volume ls -q", "network ls -q --filter type=custom"} {
		if left := sh(t, "docker "+list); left != "" {
			t.Errorf("docker %s: %s", list, left)
		}
	}
	if images := imagesNow(t); images != "slate:1" {
		t.Errorf("images that are kept: %q", images)
	}
	start = time.Now()
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	t.Logf("clean and check without images %s", time.Since(start))
	if images := imagesNow(t); images != "" {
		t.Errorf("images %q", images)
	}
	imagesOfTheMachine(t, p)
	imagesOfAnEarlierBoot(t, p)
	keepsImages(t, p)
}

// ownImages are two images of the machine, and hostileImages what a run makes of them.
const (
	ownImages = `tar -c -C /etc hostname | docker import - base:1; docker tag base:1 base:latest; tar -c -C /etc hosts | docker import - tool:1`

	hostileImages = `tar -c -C /etc passwd | docker import --change 'LABEL a="x\
FROM y"' - evil:1
docker tag evil:1 base:latest          # a name of the machine's, for another image
docker tag base:1 shop:1               # another name for an image of the machine
docker tag tool:1 only:1; docker rmi tool:1
printf 'FROM base:1\nLABEL a=b\nLABEL c=d\n' | docker build -q -t built:1 -
printf 'FROM evil:1\nLABEL e=f\n' | docker build -q -
docker rmi -f base:1
seq 300 | xargs -I{} docker tag evil:1 registry.example/evil:{}`
)

// imagesOfTheMachine: they stay, under the names that they had. Everything else goes.
func imagesOfTheMachine(t *testing.T, p reset.Plan) {
	t.Helper()
	sh(t, ownImages)
	check(t, os.Remove(top+"/state/docker-machine.json")) // as if the machine had come with them
	check(t, reset.Record(t.Context(), p))
	ids := sh(t, "docker images -aq --no-trunc | sort -u")
	sh(t, hostileImages)
	check(t, reset.Record(t.Context(), p)) // once in the life of a machine
	start := time.Now()
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	t.Logf("clean and check %s", time.Since(start))
	if images := imagesNow(t); images != "base:1 base:latest tool:1" {
		t.Errorf("images %q", images)
	}
	if now := sh(t, "docker images -aq --no-trunc | sort -u"); now != ids {
		t.Errorf("ids %s, want %s", now, ids)
	}
}

// imagesOfAnEarlierBoot: a run that ended with its boot has left an image, and docker has not been started since.
func imagesOfAnEarlierBoot(t *testing.T, p reset.Plan) {
	t.Helper()
	sh(t, "docker tag base:1 left:1")
	sh(t, "systemctl stop docker.socket docker.service && systemctl start docker.socket")
	sh(t, `sed -i 's/"bootId":"[^"]*"/"bootId":"earlier"/' `+top+"/state/docker-machine.json")
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	if images := imagesNow(t); images != "base:1 base:latest tool:1" {
		t.Errorf("images of an earlier boot %q", images)
	}
}
