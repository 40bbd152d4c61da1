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

// unitOf is the unit that a control group belongs to, from /proc/PID/cgroup: what stands below the slices. The line of
// version 2 begins with 0: see cgroups(7). "" for none.
func unitOf(text string) string {
	for line := range strings.Lines(text) {
		group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !ok {
			continue
		}
		for name := range strings.SplitSeq(group, "/") {
			if !strings.HasSuffix(name, ".slice") {
				return name
			}
		}
	}
	return ""
}

// userHZ is in how many parts of a second /proc tells times: it is the same wherever Go runs.
const userHZ = 100

var errStat = errors.New("a process stat that makes no sense")

// parseStat reads the parent and the birth of a process, since the boot, from /proc/PID/stat: see proc_pid_stat(5). The
// name stands in parentheses and may have any in it.
func parseStat(text string) (parent int, born time.Duration, err error) {
	const parentField, startField = 1, 19 // counted from 0, behind the name
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= startField {
		return 0, 0, errStat
	}
	parent, err1 := strconv.Atoi(fields[parentField])
	ticks, err2 := strconv.ParseInt(fields[startField], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", errStat, err)
	}
	return parent, time.Duration(ticks) * time.Second / userHZ, nil
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
	h.unit, h.name = unitOf(string(groups)), strings.TrimSuffix(string(name), "\n")
	for one := pid; one > 1 && len(h.line) < maxLine; {
		stat, err := os.ReadFile(p.at("/proc/" + strconv.Itoa(one) + "/stat"))
		if one != pid && gone(err) { // its parent has ended: it has another
			break
		}
		if err != nil {
			return holder{}, err
		}
		parent, born, err := parseStat(string(stat))
		if err != nil {
			return holder{}, err
		}
		if h.line = append(h.line, one); one == pid {
			h.born = born
		}
		one = parent
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
