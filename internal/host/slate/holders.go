package slate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupOf is the path of a control group, from /proc/PID/cgroup. The line of version 2 begins with 0: see cgroups(7).
func groupOf(text string) string {
	for line := range strings.Lines(text) {
		if group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/"); ok {
			return group
		}
	}
	return ""
}

// unitOf is the unit that a control group belongs to: what stands below the slices. "" for none.
func unitOf(text string) string {
	for name := range strings.SplitSeq(groupOf(text), "/") {
		if !strings.HasSuffix(name, ".slice") {
			return name
		}
	}
	return ""
}

// loginOf is the slice of the user whose login a control group belongs to, "" for none: see user@.service(5).
func loginOf(text string) string {
	rest, ok := strings.CutPrefix(groupOf(text), "user.slice/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(name, "user-") || !strings.HasSuffix(name, ".slice") {
		return ""
	}
	return name
}

// userHZ is in how many parts of a second /proc tells times: it is the same wherever Go runs.
const userHZ = 100

var errStat = errors.New("a process stat that makes no sense")

// kernelThread is PF_KTHREAD of linux/sched.h, which no program can give itself.
const kernelThread = 0x00200000

// stat is what counts of /proc/PID/stat.
type stat struct {
	parent int
	// born is when it was started, since the boot.
	born time.Duration
	// kernel is said of a thread of the kernel's own.
	kernel bool
	// dead is said of one that has ended and is not waited for; not of one of whose threads only the first has.
	dead bool
}

// parseStat reads /proc/PID/stat: see proc_pid_stat(5). The name stands in parentheses and may have any in it.
func parseStat(text string) (stat, error) {
	const stateField, parentField, flagsField, threadsField, startField = 0, 1, 6, 17, 19 // counted from 0, behind the name
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= startField {
		return stat{}, errStat
	}
	parent, err1 := strconv.Atoi(fields[parentField])
	flags, err2 := strconv.ParseUint(fields[flagsField], 10, 64)
	threads, err3 := strconv.Atoi(fields[threadsField])
	ticks, err4 := strconv.ParseInt(fields[startField], 10, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	ended := fields[stateField] == "Z" || fields[stateField] == "X"
	return stat{
		parent: parent, born: time.Duration(ticks) * time.Second / userHZ,
		kernel: flags&kernelThread != 0, dead: ended && threads <= 1,
	}, nil
}

// gone reports whether what was looked for in /proc has ended meanwhile.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// holders are the processes that have one of these sockets open, by the inode.
func (p Plan) holders(inodes map[uint64]bool) (map[uint64][]holder, error) {
	entries, err := os.ReadDir(p.at("/proc"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := map[uint64][]holder{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		held, err := p.held(pid, inodes)
		if err == nil && len(held) > 0 {
			var h holder
			h, err = p.holder(pid)
			for inode := range held {
				found[inode] = append(found[inode], h)
			}
		}
		if err != nil && !gone(err) {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
	}
	return found, nil
}

// held are those of the sockets that a process has open.
func (p Plan) held(pid int, inodes map[uint64]bool) (map[uint64]bool, error) {
	dir := p.at("/proc/" + strconv.Itoa(pid) + "/fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	held := map[uint64]bool{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			if gone(err) {
				continue
			}
			return nil, err
		}
		var inode uint64
		if n, err := fmt.Sscanf(target, "socket:[%d]", &inode); n == 1 && err == nil && inodes[inode] {
			held[inode] = true
		}
	}
	return held, nil
}

// maxLine bounds how many parents are looked at.
const maxLine = 64

// holder looks at a process.
func (p Plan) holder(pid int) (holder, error) {
	h := holder{pid: pid}
	dir := p.at("/proc/" + strconv.Itoa(pid))
	groups, err := os.ReadFile(path.Join(dir, "cgroup"))
	if err != nil {
		return holder{}, err
	}
	name, err := os.ReadFile(path.Join(dir, "comm"))
	if err != nil {
		return holder{}, err
	}
	h.unit, h.login, h.name = unitOf(string(groups)), loginOf(string(groups)), strings.TrimSuffix(string(name), "\n")
	for one := pid; one > 1 && len(h.line) < maxLine; {
		text, err := os.ReadFile(p.at("/proc/" + strconv.Itoa(one) + "/stat"))
		if one != pid && gone(err) { // its parent has ended: it has another
			break
		}
		if err != nil {
			return holder{}, err
		}
		s, err := parseStat(string(text))
		if err != nil {
			return holder{}, err
		}
		if h.line = append(h.line, one); one == pid {
			h.born, h.kernel, h.dead = s.born, s.kernel, s.dead
		}
		one = s.parent
	}
	return h, nil
}

// checkListeners: who listens is asked only for listeners that were not there before.
func (p Plan) checkListeners(ctx context.Context, d *Doubts, units image, added []listener) {
	if len(added) == 0 {
		return
	}
	inodes := map[uint64]bool{}
	for _, l := range added {
		inodes[l.inode] = l.inode > 0
	}
	holders, err := p.holders(inodes)
	if d.found(err) {
		return
	}
	told := map[listener]bool{}
	for _, l := range added {
		ours, err := units.listens(ctx, l, holders[l.inode])
		d.found(err)
		address := listener{Protocol: l.Protocol, Address: l.Address}
		if ours || told[address] {
			continue
		}
		told[address] = true
		d.add("%s listens at %s %s and did not before: end it, or start it before the host is prepared",
			describe(holders[l.inode]), l.Protocol, l.Address)
	}
}

// describe says who holds a socket.
func describe(holders []holder) string {
	if len(holders) == 0 {
		return "something"
	}
	text := fmt.Sprintf("process %d (%q)", holders[0].pid, holders[0].name)
	if holders[0].unit != "" {
		text += " of " + holders[0].unit
	}
	return text
}
