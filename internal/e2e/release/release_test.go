// Package release_test makes a release as its maker does, and checks it as its users do.
package release_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

const (
	version = "1.2.3-rc.1"
	commit  = "0123456789ab"
	epoch   = "1767323045"
)

// files are those of a release of both architectures.
var files = []string{
	"SHA256SUMS",
	"SHA256SUMS.sig",
	"remuda-1.2.3~rc.1-1.aarch64.rpm",
	"remuda-1.2.3~rc.1-1.x86_64.rpm",
	"remuda-agentd-1.2.3~rc.1-1.aarch64.rpm",
	"remuda-agentd-1.2.3~rc.1-1.x86_64.rpm",
	"remuda-agentd_1.2.3-rc.1_amd64.cdx.json",
	"remuda-agentd_1.2.3-rc.1_arm64.cdx.json",
	"remuda-agentd_1.2.3~rc.1-1_amd64.deb",
	"remuda-agentd_1.2.3~rc.1-1_arm64.deb",
	"remuda-controld-1.2.3~rc.1-1.aarch64.rpm",
	"remuda-controld-1.2.3~rc.1-1.x86_64.rpm",
	"remuda-controld_1.2.3-rc.1_amd64.cdx.json",
	"remuda-controld_1.2.3-rc.1_arm64.cdx.json",
	"remuda-controld_1.2.3-rc.1_image-linux-amd64.tar",
	"remuda-controld_1.2.3-rc.1_image-linux-arm64.tar",
	"remuda-controld_1.2.3-rc.1_image.tar",
	"remuda-controld_1.2.3~rc.1-1_amd64.deb",
	"remuda-controld_1.2.3~rc.1-1_arm64.deb",
	"remuda_1.2.3-rc.1_darwin_arm64.cdx.json",
	"remuda_1.2.3-rc.1_darwin_arm64.tar.gz",
	"remuda_1.2.3-rc.1_linux_amd64.cdx.json",
	"remuda_1.2.3-rc.1_linux_amd64.tar.gz",
	"remuda_1.2.3-rc.1_linux_arm64.cdx.json",
	"remuda_1.2.3-rc.1_linux_arm64.tar.gz",
	"remuda_1.2.3~rc.1-1_amd64.deb",
	"remuda_1.2.3~rc.1-1_arm64.deb",
}

// TestRelease makes one release and looks at everything in it.
func TestRelease(t *testing.T) {
	testrun.Fresh() // go test does not see the scripts, nor what make builds
	root := moduleRoot(t)
	key, public := newKey(t)
	dir := filepath.Join(t.TempDir(), "release")
	makeRelease(t, root, "OUT="+dir, "KEY="+key)

	t.Run("files", func(t *testing.T) {
		if diff := cmp.Diff(files, names(t, dir)); diff != "" {
			t.Errorf("the files of the release (-want +got):\n%s", diff)
		}
	})
	t.Run("sums", func(t *testing.T) { checkSums(t, dir) })
	t.Run("signature", func(t *testing.T) { checkSignature(t, dir, public) })
	t.Run("images", func(t *testing.T) { checkImages(t, dir) })
	t.Run("components", func(t *testing.T) { checkComponents(t, root, dir) })
	t.Run("packages", func(t *testing.T) { checkPackages(t, dir) })
	t.Run("remuda", func(t *testing.T) { checkRemuda(t, dir) })
	t.Run("same again", func(t *testing.T) { checkSameAgain(t, root, dir) })
	t.Run("the page of AWS", func(t *testing.T) { checkThePage(t, root) })
}

// TestWhatIsNoRelease has what the script refuses before it builds anything.
func TestWhatIsNoRelease(t *testing.T) {
	testrun.Fresh()
	for name, test := range map[string]struct {
		environ []string
		says    string
	}{
		"no version of a release": {[]string{"VERSION=v1.0.0-3-g0123456", "KEY=none"}, "is not the version of a release"},
		"a changed tree":          {[]string{"VERSION=v1.0.0-dirty", "KEY=none"}, "is not the version of a release"},
		"no key":                  {[]string{"VERSION=1.0.0", "KEY="}, "KEY=release.pem is required"},
		"a key that is not there": {[]string{"VERSION=1.0.0", "KEY=/nonexistent"}, "cannot read the key"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(moduleRoot(t), "scripts/release"), t.TempDir())
		cmd.Env = append(os.Environ(), test.environ...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), test.says) {
			t.Errorf("%s: got %v, want %q:\n%s", name, err, test.says, out)
		}
	}
}

// TestTheVersionIsThatOfTheTag has the script look for the version in a repository that has nothing else. With a version
// it goes on to ask for the key.
func TestTheVersionIsThatOfTheTag(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "scripts/release")
	if err := os.WriteFile(script, read(t, filepath.Join(moduleRoot(t), "scripts/release")), 0o755); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	says := func(want string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), script, filepath.Join(dir, "out"))
		cmd.Env = append(os.Environ(), "VERSION=", "KEY=")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v, want %q:\n%s", err, want, out)
		}
	}
	git("init", "-q")
	git("add", "scripts")
	git("commit", "-q", "-m", "first")
	says("the commit has no tag")
	git("tag", "other")
	says("the commit has no tag")
	git("tag", "v1.2.3")
	says("KEY=release.pem is required")
	if err := os.WriteFile(script, append(read(t, script), '\n'), 0o755); err != nil {
		t.Fatal(err)
	}
	says("1.2.3-dirty is not the version of a release")
	git("commit", "-q", "-a", "-m", "second")
	says("the commit has no tag")
}

// checkSums compares the files with the list, which has all of them except itself and its signature.
func checkSums(t *testing.T, dir string) {
	sums := readSums(t, dir)
	for _, name := range names(t, dir) {
		if strings.HasPrefix(name, "SHA256SUMS") {
			continue
		}
		if got := sum(t, filepath.Join(dir, name)); got != sums[name] {
			t.Errorf("%s has the sum %s and is listed with %q", name, got, sums[name])
		}
	}
	if want := len(files) - 2; len(sums) != want {
		t.Errorf("%d sums, want %d", len(sums), want)
	}
}

// checkSignature verifies the sums with the command of the README, and again with one byte changed.
func checkSignature(t *testing.T, dir, public string) {
	signature := filepath.Join(t.TempDir(), "sig")
	if out, err := exec.CommandContext(t.Context(), "openssl", "base64", "-d", "-A", "-in", filepath.Join(dir, "SHA256SUMS.sig"), "-out", signature).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content := read(t, filepath.Join(dir, "SHA256SUMS"))
	verify := func(content []byte) error {
		cmd := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-verify", public, "-signature", signature)
		cmd.Stdin = bytes.NewReader(content)
		return cmd.Run()
	}
	if err := verify(content); err != nil {
		t.Errorf("the signature does not verify: %v", err)
	}
	content[0] ^= 1
	if err := verify(content); err == nil {
		t.Error("the signature verifies with a changed byte")
	}
}

// checkComponents compares the lists of components with what go.mod requires: each names Go itself, and nothing that
// go.mod does not name or that it has in another version.
func checkComponents(t *testing.T, root, dir string) {
	required := requirements(t, root)
	for of, modules := range map[string][]string{
		"remuda-agentd_%s_amd64":   {"std", "github.com/hashicorp/go-hclog"},
		"remuda-agentd_%s_arm64":   {"std", "github.com/hashicorp/go-hclog"},
		"remuda-controld_%s_amd64": {"std", "google.golang.org/grpc", "github.com/aws/aws-sdk-go-v2/service/sqs"},
		"remuda-controld_%s_arm64": {"std", "google.golang.org/grpc", "github.com/aws/aws-sdk-go-v2/service/sqs"},
		"remuda_%s_linux_amd64":    {"std", "github.com/spf13/cobra"},
		"remuda_%s_linux_arm64":    {"std", "github.com/spf13/cobra"},
		"remuda_%s_darwin_arm64":   {"std", "github.com/spf13/cobra"},
	} {
		name := fmt.Sprintf(of, version) + ".cdx.json"
		var list struct {
			BOMFormat string
			Metadata  struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(read(t, filepath.Join(dir, name)), &list); err != nil {
			t.Fatal(err)
		}
		main := list.Metadata.Component
		if list.BOMFormat != "CycloneDX" || main.Name != "github.com/remuda-ci/remuda" || main.Version != "v"+version {
			t.Errorf("%s: it is of %+v, format %s", name, main, list.BOMFormat)
		}
		found := map[string]bool{}
		for _, c := range list.Components {
			found[c.Name] = true
			if want := required[c.Name]; c.Name != "std" && want != c.Version {
				t.Errorf("%s: %s %s, and go.mod has %q", name, c.Name, c.Version, want)
			}
		}
		for _, module := range modules {
			if !found[module] {
				t.Errorf("%s does not name %s", name, module)
			}
		}
	}
}

// checkPackages compares the programs of the Debian packages with those of the image, and runs those of this machine.
func checkPackages(t *testing.T, dir string) {
	for _, architecture := range []string{"amd64", "arm64"} {
		for _, program := range []string{"agentd", "controld"} {
			data := unpackDeb(t, filepath.Join(dir, fmt.Sprintf("remuda-%s_1.2.3~rc.1-1_%s.deb", program, architecture)))
			content := data["./usr/bin/"+program]
			if len(content) == 0 {
				t.Fatalf("%s of %s is not in its package, which has %d files", program, architecture, len(data))
			}
			if program == "controld" && !bytes.Equal(content, controldOf(t, dir, architecture)) {
				t.Errorf("controld of %s is another in the image than in the package", architecture)
			}
			checkVersion(t, program, architecture, content)
		}
	}
}

// checkRemuda compares the program of each archive with that of the package, runs the one of this machine, and looks for its pages.
func checkRemuda(t *testing.T, dir string) {
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_arm64"} {
		name := "remuda_" + version + "_" + system
		files := unpack(t, gunzip(t, read(t, filepath.Join(dir, name+".tar.gz"))))
		program := files[name+"/remuda"]
		for _, file := range []string{"remuda", "LICENSE", "man/remuda.1", "man/remuda-why.1", "completions/remuda.bash", "completions/_remuda", "completions/remuda.fish"} {
			if len(files[name+"/"+file]) == 0 {
				t.Errorf("%s has no %s", name, file)
			}
		}
		if system == "darwin_arm64" {
			if !bytes.HasPrefix(program, []byte{0xcf, 0xfa, 0xed, 0xfe}) { // MH_MAGIC_64 of <mach-o/loader.h>
				t.Errorf("%s is no program of macOS", name)
			}
			continue
		}
		architecture := strings.TrimPrefix(system, "linux_")
		checkVersion(t, "remuda", architecture, program)
		deb := unpackDeb(t, filepath.Join(dir, fmt.Sprintf("remuda_1.2.3~rc.1-1_%s.deb", architecture)))
		if !bytes.Equal(deb["./usr/bin/remuda"], program) {
			t.Errorf("remuda of %s is another in the archive than in the package", architecture)
		}
		for _, file := range []string{
			"man/man1/remuda.1", "man/man1/remuda-why.1", "bash-completion/completions/remuda", "zsh/vendor-completions/_remuda", "fish/vendor_completions.d/remuda.fish",
		} {
			if len(deb["./usr/share/"+file]) == 0 {
				t.Errorf("the package of %s has no %s", architecture, file)
			}
		}
	}
}

// checkSameAgain makes the release of a copy of the tree in another place, with other times, flags and mask, for one
// architecture: the sums must be the same.
func checkSameAgain(t *testing.T, root, dir string) {
	copied := copyTree(t, root)
	again := filepath.Join(t.TempDir(), "again")
	makeRelease(t, copied, "OUT="+again, "KEY=none", "ARCHITECTURES=amd64", "GOFLAGS=-tags=other", "GOAMD64=v2")
	want := readSums(t, dir)
	got := readSums(t, again)
	if len(got) != 14 {
		t.Errorf("the second release has %d files, want 14", len(got))
	}
	for name, sum := range got {
		if name == "remuda-controld_"+version+"_image.tar" {
			continue // the index of one architecture is not that of two
		}
		if want[name] != sum {
			t.Errorf("%s is not the same again", name)
		}
	}
}

// packagesOfThePage are what the next steps of docs/aws.md take, and packer/build.pkr.hcl.
var packagesOfThePage = []string{
	"remuda-1.0.0-1.aarch64.rpm",
	"remuda-1.0.0-1.x86_64.rpm",
	"remuda-agentd-1.0.0-1.aarch64.rpm",
	"remuda-agentd-1.0.0-1.x86_64.rpm",
	"remuda-agentd_1.0.0-1_amd64.deb",
	"remuda-agentd_1.0.0-1_arm64.deb",
	"remuda-controld-1.0.0-1.aarch64.rpm",
	"remuda-controld-1.0.0-1.x86_64.rpm",
	"remuda-controld_1.0.0-1_amd64.deb",
	"remuda-controld_1.0.0-1_arm64.deb",
	"remuda_1.0.0-1_amd64.deb",
	"remuda_1.0.0-1_arm64.deb",
}

// checkThePage runs the command of the first step of docs/aws.md in a copy of the tree.
func checkThePage(t *testing.T, root string) {
	step := regexp.MustCompile("(?s)\n## 1\\. .*?```sh\n(.*?)```").FindSubmatch(read(t, filepath.Join(root, "docs/aws.md")))
	if step == nil {
		t.Fatal("the first step of docs/aws.md has no command to run")
	}
	copied := copyTree(t, root)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(step[1]))
	cmd.Dir = copied
	cmd.Env = append(os.Environ(), "COMMIT="+commit, "SOURCE_DATE_EPOCH="+epoch, "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", step[1], err, out)
	}
	if diff := cmp.Diff(packagesOfThePage, names(t, filepath.Join(copied, "bin/packages"))); diff != "" {
		t.Errorf("the packages (-want +got):\n%s", diff)
	}
}

// makeRelease runs make release in a tree.
func makeRelease(t *testing.T, root string, environ ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `umask 077; exec make --silent release VERSION="$VERSION" COMMIT="$COMMIT" KEY="$KEY" OUT="$OUT"`)
	cmd.Dir = root
	cmd.Env = slices.Concat(os.Environ(), []string{"VERSION=" + version, "COMMIT=" + commit, "SOURCE_DATE_EPOCH=" + epoch, "MAKEFLAGS=", "MAKELEVEL="}, environ)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make release: %v\n%s", err, out)
	}
}

// copyTree copies what git has, or would take, to another directory, with the tools that are built.
func copyTree(t *testing.T, root string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // removed and not yet committed, or a link
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, read(t, filepath.Join(root, name)), info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		// With its time, so that make does not build a tool again.
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, ".cache"), filepath.Join(to, ".cache")); err != nil {
		t.Fatal(err)
	}
	return to
}

// newKey makes a pair of keys with the commands of the README.
func newKey(t *testing.T) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	private, public = filepath.Join(dir, "release.pem"), filepath.Join(dir, "release.pub")
	for _, args := range [][]string{
		{"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private},
		{"pkey", "-in", private, "-pubout", "-out", public},
	} {
		if out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	return private, public
}

// requirements are the modules of go.mod with their versions.
func requirements(t *testing.T, root string) map[string]string {
	t.Helper()
	required := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(root, "go.mod")))) {
		if fields := strings.Fields(line); len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			required[fields[0]] = fields[1]
		}
	}
	return required
}

func readSums(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(dir, "SHA256SUMS")))) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("a line of the sums: %q", line)
		}
		sums[name] = sum
	}
	return sums
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func sum(t *testing.T, file string) string {
	t.Helper()
	s := sha256.Sum256(read(t, file))
	return hex.EncodeToString(s[:])
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
