package reset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/prometheus/procfs"

	"github.com/remuda-ci/remuda/internal/proc"
)

// listener is a socket that waits for connections or datagrams.
type listener struct {
	Protocol string         `json:"protocol"` // tcp or udp
	Address  netip.AddrPort `json:"address"`
	// inode is that of the socket, by which its owners are found; 0 if it has none.
	inode uint64
}

// States of include/net/tcp_states.h. A UDP socket that is bound and not connected is in the state of a closed one.
const (
	stateListen = 0x0A
	stateClosed = 0x07
)

// ports is the range from which the kernel takes the ports of outgoing sockets.
type ports struct{ first, last uint16 }

func (r ports) contain(port uint16) bool { return r.first <= port && port <= r.last }

// parsePorts reads /proc/sys/net/ipv4/ip_local_port_range, which counts for IPv6 too.
func parsePorts(text string) (ports, error) {
	var r ports
	if _, err := fmt.Sscan(text, &r.first, &r.last); err != nil {
		return ports{}, fmt.Errorf("range of local ports %q: %w", text, err)
	}
	return r, nil
}

// listeners are the sockets that wait for connections or datagrams.
//
// With UDP every question to a name server has a socket that looks like a listener for as long as it takes, on a port that
// the kernel chose: those ports are left out. No client finds a listener there without being told its port; with TCP all
// are taken.
func (p Plan) listeners() ([]listener, error) {
	text, err := os.ReadFile(p.at("/proc/sys/net/ipv4/ip_local_port_range"))
	if err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	outgoing, err := parsePorts(string(text))
	if err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	root, err := procfs.NewFS(p.at("/proc"))
	if err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	// agentd may open no netlink sockets (RestrictAddressFamilies of its unit), which is what these are deprecated for.
	tcp, err1 := root.NetTCP()   //lint:ignore SA1019 see above
	tcp6, err2 := root.NetTCP6() //lint:ignore SA1019 see above
	udp, err3 := root.NetUDP()
	udp6, err4 := root.NetUDP6()
	// A kernel without IPv6 has neither of its files.
	if err := errors.Join(err1, ignoreMissing(err2), err3, ignoreMissing(err4)); err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	var all []listener
	for _, s := range slices.Concat(tcp, tcp6) {
		if s.St == stateListen {
			all = append(all, listenerOf("tcp", s.LocalAddr, s.LocalPort, s.Inode))
		}
	}
	for _, s := range slices.Concat(udp, udp6) {
		if s.St == stateClosed && !outgoing.contain(uint16(s.LocalPort)) {
			all = append(all, listenerOf("udp", s.LocalAddr, s.LocalPort, s.Inode))
		}
	}
	return all, nil
}

func listenerOf(protocol string, ip net.IP, port, inode uint64) listener {
	address, _ := netip.AddrFromSlice(ip) // procfs makes 4 or 16 bytes of it, or an error
	return listener{Protocol: protocol, Address: netip.AddrPortFrom(address, uint16(port)), inode: inode}
}

// newListeners returns those at addresses where nothing listened before. There may be several at one address.
func newListeners(now, base []listener) []listener {
	known := map[listener]bool{}
	for _, l := range base {
		l.inode = 0
		known[l] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(l listener) bool {
		l.inode = 0
		return known[l]
	})
}

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
