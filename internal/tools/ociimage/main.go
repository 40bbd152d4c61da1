// Command ociimage writes container images of one program without Docker and without a registry: an OCI layout as a tar
// file for each architecture, and one with an index of all of them.
//
// An image has the program, the certificates of Mozilla's root program, a user, the license and an empty /tmp. The same
// inputs give the same bytes: every time is that of -epoch.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the id of user and group in the image. It is not root, and no system hands it out.
const user = 65532

// refName is the annotation by which tools find an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// options are the flags.
type options struct {
	binaries []string // ARCHITECTURE=FILE
	version  string
	revision string
	license  string
	created  time.Time
	out      string
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ociimage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("ociimage", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.version, "version", "", "version, which is the tag of the image")
	flags.StringVar(&o.revision, "revision", "", "commit")
	flags.StringVar(&o.license, "license", "", "file with the license")
	flags.StringVar(&o.out, "out", "", "path of the tar files without -linux-ARCHITECTURE.tar")
	epoch := flags.Int64("epoch", 0, "time of everything in the image, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.binaries, o.created = flags.Args(), time.Unix(*epoch, 0).UTC()
	if o.version == "" || o.revision == "" || o.license == "" || o.out == "" || len(o.binaries) == 0 {
		return errors.New("every flag and at least one ARCHITECTURE=FILE are required")
	}
	return write(o)
}

// write writes a tar file for each binary, and one for their index.
func write(o options) error {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	for _, b := range o.binaries {
		architecture, file, ok := strings.Cut(b, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=FILE", b)
		}
		img, err := image(o, architecture, file)
		if err != nil {
			return fmt.Errorf("make the image of %s: %w", architecture, err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		if err := archive(o.out+"-linux-"+architecture+".tar", o, func(p layout.Path) error {
			return p.AppendImage(img, layout.WithAnnotations(map[string]string{refName: o.version}), layout.WithPlatform(*platform))
		}); err != nil {
			return err
		}
	}
	return archive(o.out+".tar", o, func(p layout.Path) error {
		return p.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: o.version}))
	})
}

// image is the image of one architecture.
func image(o options, architecture, binary string) (v1.Image, error) {
	content, err := rootFileSystem(o, binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "ociimage", Created: v1.Time{Time: o.created}}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, configuration(o, architecture, img))
}

func configuration(o options, architecture string, img v1.Image) *v1.ConfigFile {
	file, err := img.ConfigFile()
	if err != nil {
		panic(err) // img was made above, of what is in memory
	}
	program := "/usr/bin/controld"
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", architecture, v1.Time{Time: o.created}
	file.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{program},
		Cmd:        []string{"serve", "--config", "/etc/remuda/controld.yaml"},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "remuda-controld",
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
			"org.opencontainers.image.created":  o.created.Format(time.RFC3339),
			"org.opencontainers.image.source":   "https://github.com/remuda-ci/remuda",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return file
}

// rootFileSystem is a tar file of what is in the image.
func rootFileSystem(o options, binary string) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(o.license)
	if err != nil {
		return nil, err
	}
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nremuda:x:%d:%d:remuda:/:/sbin/nologin\n", user, user)
	group := fmt.Sprintf("root:x:0:\nremuda:x:%d:\n", user)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte(group)},
		{"etc/passwd", 0o644, []byte(passwd)},
		{"etc/remuda/", 0o755, nil},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates},
		{"tmp/", 0o1777, nil},
		{"usr/", 0o755, nil},
		{"usr/bin/", 0o755, nil},
		{"usr/bin/controld", 0o755, program},
		{"usr/share/", 0o755, nil},
		{"usr/share/doc/", 0o755, nil},
		{"usr/share/doc/remuda-controld/", 0o755, nil},
		{"usr/share/doc/remuda-controld/copyright", 0o644, license},
	} {
		if err := add(w, f.name, f.mode, f.content, o.created); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// roots are the certificates of Mozilla's root program, in PEM and in an order that does not change. A root that Mozilla
// trusts with conditions is left out: a file of certificates cannot carry them.
func roots() ([]byte, error) {
	var all []string
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})))
		}
	}
	if len(all) < 50 {
		return nil, fmt.Errorf("%d root certificates are too few", len(all))
	}
	slices.Sort(all)
	return []byte(strings.Join(all, "")), nil
}

func add(w *tar.Writer, name string, mode int64, content []byte, at time.Time) error {
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if strings.HasSuffix(name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// archive writes a layout that fill fills as a tar file.
func archive(file string, o options, fill func(layout.Path) error) error {
	dir, err := os.MkdirTemp("", "ociimage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := fill(p); err != nil {
		return fmt.Errorf("write the layout of %s: %w", path.Base(file), err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	// WalkDir goes in lexical order.
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		in, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return add(w, filepath.ToSlash(in)+"/", 0o755, nil, o.created)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return add(w, filepath.ToSlash(in), 0o644, content, o.created)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
