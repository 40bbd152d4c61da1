package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// descriptor is what an OCI layout says about one of its blobs.
type descriptor struct {
	MediaType   string
	Digest      string
	Annotations map[string]string
	Platform    struct{ OS, Architecture string }
}

// manifest is that of an image or an index.
type manifest struct {
	Manifests []descriptor
	Config    descriptor
	Layers    []descriptor
}

// configuration is the part of an image's configuration that is ours.
type configuration struct {
	OS, Architecture, Created string
	Config                    struct {
		User            string
		Entrypoint, Cmd []string
		Labels          map[string]string
	}
}

// checkImages looks at the image of each architecture, and at the index of both.
func checkImages(t *testing.T, dir string) {
	for _, architecture := range []string{"amd64", "arm64"} {
		checkImage(t, dir, architecture)
	}
	all := unpack(t, read(t, filepath.Join(dir, "remuda-controld_"+version+"_image.tar")))
	var top, index manifest
	decode(t, all["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout of both has %+v", top)
	}
	decode(t, blob(t, all, top.Manifests[0].Digest), &index)
	var platforms []string
	for _, m := range index.Manifests {
		platforms = append(platforms, m.Platform.OS+"/"+m.Platform.Architecture)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("the platforms of the index (-want +got):\n%s", diff)
	}
}

func checkImage(t *testing.T, dir, architecture string) {
	c, files := image(t, dir, architecture)
	labels := map[string]string{}
	for name, value := range c.Config.Labels {
		labels[strings.TrimPrefix(name, "org.opencontainers.image.")] = value
	}
	got := []any{c.OS, c.Architecture, c.Created, c.Config.User, c.Config.Entrypoint, c.Config.Cmd, labels}
	want := []any{
		"linux", architecture, "2026-01-02T03:04:05Z", "65532:65532", []string{"/usr/bin/controld"},
		[]string{"serve", "--config", "/etc/remuda/controld.yaml"},
		map[string]string{
			"title": "remuda-controld", "version": version, "revision": commit, "created": "2026-01-02T03:04:05Z",
			"source": "https://github.com/remuda-ci/remuda", "licenses": "Apache-2.0",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the configuration of %s (-want +got):\n%s", architecture, diff)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("the image has no certificates")
	}
	checkVersion(t, "controld", architecture, files["usr/bin/controld"])
}

// image is the configuration of an image, and its files.
func image(t *testing.T, dir, architecture string) (configuration, map[string][]byte) {
	t.Helper()
	all := unpack(t, read(t, filepath.Join(dir, "remuda-controld_"+version+"_image-linux-"+architecture+".tar")))
	var index, m manifest
	var c configuration
	decode(t, all["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout of %s has %+v", architecture, index)
	}
	decode(t, blob(t, all, index.Manifests[0].Digest), &m)
	decode(t, blob(t, all, m.Config.Digest), &c)
	if len(m.Layers) != 1 {
		t.Fatalf("%d layers", len(m.Layers))
	}
	return c, unpack(t, gunzip(t, blob(t, all, m.Layers[0].Digest)))
}

func controldOf(t *testing.T, dir, architecture string) []byte {
	t.Helper()
	_, files := image(t, dir, architecture)
	return files["usr/bin/controld"]
}

// checkVersion runs a program if it is of this machine's architecture; of another it only looks for the version in it.
func checkVersion(t *testing.T, name, architecture string, program []byte) {
	t.Helper()
	if architecture != runtime.GOARCH {
		if !bytes.Contains(program, []byte("v"+version)) {
			t.Errorf("%s of %s does not contain its version", name, architecture)
		}
		return
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, program, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), file, "version").CombinedOutput()
	want := fmt.Sprintf("%s v%s (commit %s, ", name, version, commit)
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%s says %q (%v), want %q", name, out, err, want)
	}
}

// unpackDeb is what a Debian package installs.
func unpackDeb(t *testing.T, file string) map[string][]byte {
	t.Helper()
	in := read(t, file)
	const magic = "!<arch>\n"
	if !bytes.HasPrefix(in, []byte(magic)) {
		t.Fatalf("%s is not an archive", file)
	}
	for in = in[len(magic):]; len(in) >= 60; {
		size, err := strconv.Atoi(strings.TrimSpace(string(in[48:58])))
		if err != nil || len(in) < 60+size {
			t.Fatalf("%s: a header %q", file, in[:60])
		}
		if strings.HasPrefix(string(in), "data.tar.gz") {
			return unpack(t, gunzip(t, in[60:60+size]))
		}
		in = in[min(len(in), 60+size+size%2):]
	}
	t.Fatalf("%s has no data.tar.gz", file)
	return nil
}

func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = content
		}
	}
}

func gunzip(t *testing.T, in []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func blob(t *testing.T, files map[string][]byte, digest string) []byte {
	t.Helper()
	content, ok := files["blobs/"+strings.Replace(digest, ":", "/", 1)]
	if !ok {
		t.Fatalf("no blob %s", digest)
	}
	return content
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
