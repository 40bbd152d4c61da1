package slate

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/remuda-ci/remuda/internal/proc"
)

// unitOf is the unit that a control group belongs to: what stands below the slices. "" for none.
func unitOf(group string) string {
	for name := range strings.SplitSeq(group, "/") {
		if !strings.HasSuffix(name, ".slice") {
			return name
		}
	}
	return ""
}

// loginOf is the slice of the user whose login a control group belongs to, "" for none: see user@.service(5).
func loginOf(group string) string {
	rest, ok := strings.CutPrefix(group, "user.slice/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(name, "user-") || !strings.HasSuffix(name, ".slice") {
		return ""
	}
	return name
}

// holders are the processes that have one of these sockets open, by the inode.
func (p Plan) holders(inodes map[uint64]bool) (map[uint64][]holder, error) {
	pids, err := p.proc().PIDs()
	if err != nil {
		return nil, err
	}
	found := map[uint64][]holder{}
	for _, pid := range pids {
		if err := p.addHolder(found, pid, inodes); err != nil && !proc.Gone(err) {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
	}
	return found, nil
}

// addHolder adds the process to the holders of each of the sockets that it has open.
func (p Plan) addHolder(found map[uint64][]holder, pid int, inodes map[uint64]bool) error {
	sockets, err := p.proc().Sockets(pid)
	if err != nil {
		return err
	}
	maps.DeleteFunc(sockets, func(inode uint64, _ bool) bool { return !inodes[inode] })
	if len(sockets) == 0 {
		return nil
	}
	h, err := p.holder(pid)
	if err != nil {
		return err
	}
	for inode := range sockets {
		found[inode] = append(found[inode], h)
	}
	return nil
}

// holder looks at a process.
func (p Plan) holder(pid int) (holder, error) {
	group, err := p.proc().Cgroup(pid)
	if err != nil {
		return holder{}, err
	}
	line, err := p.proc().Lineage(pid)
	if err != nil {
		return holder{}, err
	}
	h := holder{
		pid: pid, name: line[0].Name, unit: unitOf(group), login: loginOf(group),
		born: line[0].SinceBoot(), kernel: line[0].Kernel, dead: line[0].Exited(),
	}
	for _, one := range line {
		if one.PID > 1 {
			h.line = append(h.line, one.PID)
		}
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
