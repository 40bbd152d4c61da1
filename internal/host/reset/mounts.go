package reset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a line of /proc/PID/mountinfo, as far as it identifies the mount: see proc_pid_mountinfo(5).
type mount struct {
	Point  string `json:"point"`
	Root   string `json:"root"` // of the mount within its file system
	Kind   string `json:"kind"`
	Source string `json:"source"`
}

// parseMounts reads mountinfo. A line that cannot be read is an error: a mount must not be overlooked.
func parseMounts(text string) ([]mount, error) {
	var mounts []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		left, right := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(left) < 6 || len(right) < 2 {
			return nil, fmt.Errorf("malformed line %q in mountinfo", line)
		}
		mounts = append(mounts, mount{
			Root: unescape(left[3]), Point: unescape(left[4]), Kind: unescape(right[0]), Source: unescape(right[1]),
		})
	}
	return mounts, nil
}

// unescape resolves \ooo, a byte in octal: the kernel escapes space, tab, newline, \ and # that way.
func unescape(s string) string {
	return octal.ReplaceAllStringFunc(s, func(escape string) string {
		c, err := strconv.ParseUint(escape[1:], 8, 8)
		if err != nil {
			return escape
		}
		return string([]byte{byte(c)})
	})
}

var octal = regexp.MustCompile(`\\[0-7]{3}`)

func (p Plan) mounts() ([]mount, error) {
	text, err := os.ReadFile(p.at("/proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMounts(string(text))
}

// below reports whether a path is below a directory. A directory is not below itself.
func below(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }

// isSystemMount reports whether the system itself mounts and unmounts such a file system now and then: for the login of an
// operator, for a unit with credentials, when binfmt_misc is first used.
func (p Plan) isSystemMount(m mount) bool {
	if below(m.Point, "/run/user") {
		return m.Kind == "tmpfs" && m.Point != "/run/user/"+strconv.Itoa(p.UID) && !strings.Contains(m.Point[len("/run/user/"):], "/")
	}
	return (below(m.Point, "/run/credentials") && (m.Kind == "tmpfs" || m.Kind == "ramfs")) ||
		(m.Point == "/proc/sys/fs/binfmt_misc" && (m.Kind == "binfmt_misc" || m.Kind == "autofs"))
}

// mountPlace is where a mount is. An automount lies under the file system that it mounts on first use.
type mountPlace struct {
	point     string
	automount bool
}

func (m mount) at() mountPlace { return mountPlace{m.Point, m.Kind == "autofs"} }

// foreignMounts returns the mounts that a run must have made: those that were not there before, or fewer times, and that
// no unit of the image claims. A unit makes one mount at its place, so one on top of that is foreign. Later mounts lie on
// and in earlier ones, so they come first.
func (p Plan) foreignMounts(now, base []mount, claimed func(mount) bool) []mount {
	known := map[mount]int{}
	for _, m := range base {
		known[m]++
	}
	var foreign []mount
	taken := map[mountPlace]bool{}
	for _, m := range now {
		lowest := !taken[m.at()]
		taken[m.at()] = true
		if known[m]--; known[m] >= 0 || p.isSystemMount(m) || (lowest && claimed(m)) {
			continue
		}
		foreign = append(foreign, m)
	}
	slices.Reverse(foreign)
	return foreign
}

// unwantedMounts returns the foreign mounts and those in directories that are about to be deleted.
func (p Plan) unwantedMounts(now, base []mount, claimed func(mount) bool) []mount {
	unwanted := p.foreignMounts(now, base, claimed)
	for _, m := range slices.Backward(now) {
		inside := slices.ContainsFunc(p.runDirs(), func(dir string) bool { return below(m.Point, dir) })
		if inside && !slices.Contains(unwanted, m) {
			unwanted = append(unwanted, m)
		}
	}
	return unwanted
}

// unmountRounds bounds the rounds of unmounting: a mount hidden under another is reached in the next round.
const unmountRounds = 20

// unmount removes all mounts of runs, lazily: files that are still open on them do not keep the mount.
func (p Plan) unmount(ctx context.Context, m manager, base baseline) error {
	var last, failure error
	units := p.imageUnits(m, base)
	claimed := func(one mount) bool {
		ok, err := units.accountsForMount(ctx, one)
		failure = errors.Join(failure, err)
		return ok
	}
	for range unmountRounds {
		now, err := p.mounts()
		if err != nil {
			return err
		}
		unwanted := p.unwantedMounts(now, base.Mounts, claimed)
		if failure != nil || len(unwanted) == 0 {
			return failure
		}
		for _, m := range unwanted {
			err := unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			// Otherwise it is not mounted any more, since it went with the one that it was in.
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("unmount %q: %w", m.Point, err)
			}
			last = fmt.Errorf("unmount %q (%s): it is still mounted after %d attempts: withdraw the host", m.Point, m.Kind, unmountRounds)
		}
	}
	return last
}

// diskSpace is what is free on a file system: bytes and files. totalFiles is 0 on one that does not count files.
type diskSpace struct{ bytes, files, totalFiles uint64 }

func diskSpaceAt(path string) (diskSpace, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return diskSpace{}, fmt.Errorf("read free space of %s: %w", path, err)
	}
	return diskSpace{bytes: st.Bavail * uint64(st.Bsize), files: st.Ffree, totalFiles: st.Files}, nil
}

func (p Plan) checkDiskSpace(d *Findings) {
	for _, path := range p.runDirs() {
		free, err := diskSpaceAt(path)
		if d.addErr(err) {
			continue
		}
		if free.bytes < p.MinimumFree {
			d.add("%d MiB are free for %s, %d are needed: take a larger disk, or ask for less", free.bytes>>20, path, p.MinimumFree>>20)
		}
		if free.totalFiles > 0 && free.files < p.MinimumFreeInodes {
			d.add("%d more files fit on the disk of %s, %d are needed: make its file system with more inodes, or ask for less",
				free.files, path, p.MinimumFreeInodes)
		}
	}
}
