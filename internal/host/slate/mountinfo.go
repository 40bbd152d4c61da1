package slate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a line of /proc/PID/mountinfo, as far as it tells one mount from another: see proc_pid_mountinfo(5).
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
			return nil, fmt.Errorf("line %q of mountinfo makes no sense", line)
		}
		mounts = append(mounts, mount{
			Root: unescape(left[3]), Point: unescape(left[4]), Kind: unescape(right[0]), Source: unescape(right[1]),
		})
	}
	return mounts, nil
}

// unescape resolves \ooo, which stands for a byte in octal: the kernel writes space, tab, newline, \ and # so.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (p Plan) mounts() ([]mount, error) {
	text, err := os.ReadFile(p.at("/proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMounts(string(text))
}

// below reports whether a path is in a directory, which it is not in itself.
func below(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }

// passing reports whether the system itself mounts and unmounts such a thing as it goes: for the login of an operator, for
// a unit with credentials, when the formats of programs are first looked at.
func (p Plan) passing(m mount) bool {
	if below(m.Point, "/run/user") {
		return m.Kind == "tmpfs" && m.Point != "/run/user/"+strconv.Itoa(p.UID) && !strings.Contains(m.Point[len("/run/user/"):], "/")
	}
	return (below(m.Point, "/run/credentials") && (m.Kind == "tmpfs" || m.Kind == "ramfs")) ||
		(m.Point == "/proc/sys/fs/binfmt_misc" && (m.Kind == "binfmt_misc" || m.Kind == "autofs"))
}

// place is where a mount is. What mounts by itself when it is first looked at lies under that which it then mounts.
type place struct {
	point     string
	automount bool
}

func (m mount) place() place { return place{m.Point, m.Kind == "autofs"} }

// foreign are the mounts that a run must have made: those that were not there before, each as often as it was, and that are
// not claimed by a unit of the image. A unit mounts one at its place: what lies over that is not its. Later ones lie over
// and in earlier ones, so they come first.
func (p Plan) foreign(now, base []mount, claimed func(mount) bool) []mount {
	known := map[mount]int{}
	for _, m := range base {
		known[m]++
	}
	var foreign []mount
	taken := map[place]bool{}
	for _, m := range now {
		lowest := !taken[m.place()]
		taken[m.place()] = true
		if known[m]--; known[m] >= 0 || p.passing(m) || (lowest && claimed(m)) {
			continue
		}
		foreign = append(foreign, m)
	}
	slices.Reverse(foreign)
	return foreign
}

// unwanted are the foreign mounts and those in directories that are about to be deleted.
func (p Plan) unwanted(now, base []mount, claimed func(mount) bool) []mount {
	unwanted := p.foreign(now, base, claimed)
	for _, m := range slices.Backward(now) {
		inside := slices.ContainsFunc(p.places(), func(dir string) bool { return below(m.Point, dir) })
		if inside && !slices.Contains(unwanted, m) {
			unwanted = append(unwanted, m)
		}
	}
	return unwanted
}

// unmountRounds is how often the mounts are looked at: one that was hidden under another is reached in the next round.
const unmountRounds = 20

// unmount takes away all mounts of runs. What is still open on them keeps nothing but itself.
func (p Plan) unmount(ctx context.Context, m manager, base baseline) error {
	var last, failure error
	units := p.image(m, base)
	claimed := func(one mount) bool {
		ok, err := units.mounts(ctx, one)
		failure = errors.Join(failure, err)
		return ok
	}
	for range unmountRounds {
		now, err := p.mounts()
		if err != nil {
			return err
		}
		unwanted := p.unwanted(now, base.Mounts, claimed)
		if failure != nil || len(unwanted) == 0 {
			return failure
		}
		for _, m := range unwanted {
			err := unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			// Not mounted any more: it went with the one that it was in.
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("unmount %q: %w", m.Point, err)
			}
			last = fmt.Errorf("unmount %q (%s): it is still mounted after %d attempts: withdraw the host", m.Point, m.Kind, unmountRounds)
		}
	}
	return last
}
