package reset

import (
	"context"
	"fmt"
	"maps"

	"github.com/remuda-ci/remuda/internal/proc"
)

// socketOwners returns the processes that have one of these sockets open, by its inode.
func (p Plan) socketOwners(inodes map[uint64]bool) (map[uint64][]process, error) {
	pids, err := p.proc().PIDs()
	if err != nil {
		return nil, err
	}
	found := map[uint64][]process{}
	for _, pid := range pids {
		sockets, err := p.proc().Sockets(pid)
		maps.DeleteFunc(sockets, func(inode uint64, _ bool) bool { return !inodes[inode] })
		var h process
		if err == nil && len(sockets) > 0 {
			h, err = p.readProcess(pid)
		}
		if err != nil {
			if proc.Gone(err) {
				continue
			}
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		}
		for inode := range sockets {
			found[inode] = append(found[inode], h)
		}
	}
	return found, nil
}

// checkListeners checks the listeners that were not there before. Only for those are the owners of their sockets looked up.
func (p Plan) checkListeners(ctx context.Context, d *Findings, units imageUnits, added []listener) {
	if len(added) == 0 {
		return
	}
	inodes := map[uint64]bool{}
	for _, l := range added {
		inodes[l.inode] = l.inode > 0
	}
	owners, err := p.socketOwners(inodes)
	if d.addErr(err) {
		return
	}
	reported := map[listener]bool{}
	for _, l := range added {
		ours, err := units.accountsForListener(ctx, l, owners[l.inode])
		d.addErr(err)
		address := listener{Protocol: l.Protocol, Address: l.Address}
		if ours || reported[address] {
			continue
		}
		reported[address] = true
		d.add("%s listens at %s %s and did not before: end it, or start it before the host is prepared",
			describeOwner(owners[l.inode]), l.Protocol, l.Address)
	}
}

// describeOwner says which process has a socket open.
func describeOwner(owners []process) string {
	if len(owners) == 0 {
		return "something"
	}
	text := fmt.Sprintf("process %d (%q)", owners[0].pid, owners[0].name)
	if owners[0].unit != "" {
		text += " of " + owners[0].unit
	}
	return text
}
