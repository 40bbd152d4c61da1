//go:build testhost

package reset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/reset"
)

// imagesOf is the cache of these tests.
func imagesOf(size uint64) dockerstore.Cache {
	return dockerstore.Cache{Key: "0123456789abcdef", Name: "images", Size: size, Keep: time.Hour}
}

// trusted is a run that may write the cache.
func trusted(t *testing.T, p reset.Plan, c dockerstore.Cache, script string) dockerstore.Outcome {
	t.Helper()
	if script != "" {
		sh(t, script)
	}
	p.KeepImages = true
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	start := time.Now()
	o, err := reset.KeepImages(t.Context(), p, c)
	check(t, err)
	t.Logf("kept %v in %s: %s %q", o.Kept, time.Since(start), o.Reason, o.Dropped)
	return o
}

// heldIn is what the host says that it has of the cache.
func heldIn(t *testing.T, p reset.Plan) dockerstore.Held {
	t.Helper()
	h, _, err := p.Images.Held()
	check(t, err)
	return h
}

// builds is how many layers of builds docker has.
func builds(t *testing.T) string {
	t.Helper()
	return sh(t, "docker system df --format '{{.Type}}:{{.TotalCount}}' | sed -n 's/Build Cache://p'")
}

const (
	machines = "base:1 base:latest tool:1"

	// importImage makes an image of 4 MB that is as no other.
	importImage = `make() { d=$(mktemp -d); head -c 4000000 /dev/urandom >$d/data; tar -c -C $d data | docker import - "$1"; rm -r $d; }
`
	buildImages = `programs="/bin/sh /bin/touch /usr/bin/head /bin/rm /bin/mkdir /bin/ln"
tar -ch $programs $(ldd $programs | grep -o '/[^ :]*\.so[^ ]*' | sort -u) 2>/dev/null | docker import - shell:1
for n in 1 2; do printf 'FROM shell:1\nRUN touch /x'$n' && mkdir /d && touch /d/a\nRUN rm -r /d /usr/bin/head && mkdir /d && touch /d/b && ln -s /etc/x /link && ln /d/b /d/c\nLABEL n='$n'\n' | DOCKER_BUILDKIT=0 docker build -q -t classic:1 -; done
printf 'FROM shell:1\nRUN head -c 3000000 /dev/urandom >/y\nRUN mkdir /d && touch /d/a\nRUN rm -r /d /usr/bin/head && mkdir /d && touch /d/b && ln -s /etc/x /link\n' | DOCKER_BUILDKIT=1 docker build -q -t kit:1 -
`
)

// keepsImages: what trusted runs have left stays within its bounds, and nothing of any other.
func keepsImages(t *testing.T, p reset.Plan) {
	t.Helper()
	o := trusted(t, p, imagesOf(1<<30), importImage+"make one:1; make two:1")
	if now := imagesNow(t); now != "base:1 base:latest one:1 tool:1 two:1" || !o.Kept || o.Bytes < 8_000_000 || o.Bytes > 9_000_000 {
		t.Errorf("images %q, %+v", now, o)
	}
	if h := heldIn(t, p); h.Key != "0123456789abcdef" || h.Name != "images" || h.Bytes != o.Bytes || time.Since(h.CommittedAt) > time.Minute {
		t.Errorf("held %+v", h)
	}
	// The container is gone before the clean-up.
	o = trusted(t, p, imagesOf(9<<20), importImage+"docker rm $(docker create one:1 /x); make three:1; docker tag three:1 base:latest")
	if now := imagesNow(t); now != "base:1 base:latest one:1 three:1 tool:1" || !o.Kept || o.Bytes > 9<<20 || len(o.Dropped) != 1 || !strings.Contains(o.Dropped[0], `"two:1"`) {
		t.Errorf("images %q, %+v", now, o)
	}

	old := imagesOf(1 << 30)
	old.Keep = time.Nanosecond
	o = trusted(t, p, old, buildImages)
	if now := imagesNow(t); now != "base:1 base:latest classic:1 kit:1 shell:1 tool:1" || builds(t) == "0" {
		t.Errorf("images %q, %s layers of builds, %+v", now, builds(t), o)
	}
	before := o.Bytes
	o = trusted(t, p, imagesOf(uint64(before)-1), "")
	if now := imagesNow(t); now != "base:1 base:latest classic:1 kit:1 shell:1 tool:1" || !o.Kept || o.Bytes >= before {
		t.Errorf("builds go first: images %q, %s layers of builds, %+v", now, builds(t), o)
	}
	if o = trusted(t, p, imagesOf(1<<20), ""); !o.Kept || o.Bytes > 1<<20 || imagesNow(t) != machines {
		t.Errorf("%s layers of builds, %+v", builds(t), o)
	}

	// A run that may not write leaves nothing, and takes the cache with it.
	sh(t, importImage+buildImages+"make evil:1")
	check(t, clean(t, p))
	check(t, reset.Verify(t.Context(), p))
	if now := imagesNow(t); now != machines || builds(t) != "0" || heldIn(t, p) != (dockerstore.Held{}) {
		t.Errorf("images %q, %s layers of builds, held %+v", now, builds(t), heldIn(t, p))
	}
	refusesImages(t, p)
}

// refusesImages: what cannot be the cache is deleted.
func refusesImages(t *testing.T, p reset.Plan) {
	t.Helper()
	other := imagesOf(1 << 30)
	other.Key = "fedcba9876543210"
	tags := `curl -fsS -o /dev/null --unix-socket /run/docker.sock -X POST "http://docker/images/one:1/tag?repo=registry.example/a&tag=[1-4001]"`
	for name, tt := range map[string]struct {
		c           dockerstore.Cache
		script, why string
	}{
		"another cache":     {other, "", "of the cache 0123456789abcdef"},
		"thousands of tags": {imagesOf(1 << 30), tags, "with 4002 names"},
	} {
		trusted(t, p, imagesOf(1<<30), importImage+"make one:1")
		o := trusted(t, p, tt.c, tt.script)
		if now := imagesNow(t); o.Kept || !strings.Contains(o.Reason, tt.why) || now != machines || heldIn(t, p) != (dockerstore.Held{}) {
			t.Errorf("%s: images %q, %+v", name, now, o)
		}
	}
	verifiesImages(t, p)
	hostile := `docker import --change 'LABEL a="x\
y"' - "$(printf 'evil:1\nFROM')" </dev/null && exit 1
tar -c -C /etc hosts | docker import --change 'LABEL "remuda\nkept"="1"' -m "$(printf 'a\n{"Id":"x"}')" - ok:1
tar --format=posix --pax-option=comment=a -c -C /etc hosts | docker import - archive:1 # as git archive has it
d=$(mktemp -d); echo x >$d/x; tar -c -C $d . | docker import - top:1`
	o := trusted(t, p, imagesOf(1<<30), hostile)
	for _, name := range []string{"ok:1", "archive:1", "top:1"} {
		if !o.Kept || !slices.Contains(strings.Fields(imagesNow(t)), name) {
			t.Errorf("%s is not kept: images %q, %+v", name, imagesNow(t), o)
		}
	}
}

// verifiesImages: what was changed on the disk under the digest of an image does not become the cache, and other images do.
func verifiesImages(t *testing.T, p reset.Plan) {
	t.Helper()
	const victim = `d=$(mktemp -d); echo sound >$d/victim; head -c 100 /dev/urandom >$d/more; tar -c -C $d victim more | docker import - victim:1
at=$(dirname $(find /var/lib/docker/overlay2 -path '*/diff/victim')); test -d "$at"
`
	for change, why := range map[string]string{
		"echo poison >$at/victim":                     "bytes and not 6",
		"echo dnuos >$at/victim":                      "another digest",
		"chmod u+s $at/victim":                        "has mode",
		"echo poison >$at/preload":                    "which is not of it",
		"rm $at/victim; ln -s /etc/shadow $at/victim": "victim",
	} {
		p := p
		sh(t, importImage+"docker rmi sound:1 >/dev/null 2>&1 || true; make sound:1; "+victim+change)
		o := trusted(t, p, imagesOf(1<<30), "")
		if now := imagesNow(t); now != "base:1 base:latest sound:1 tool:1" || !o.Kept || !strings.Contains(strings.Join(o.Dropped, "\n"), why) {
			t.Errorf("%s: images %q, %+v", change, now, o)
		}
	}
	check(t, clean(t, p))
}
