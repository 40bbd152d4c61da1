package slate

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// listener is a socket that waits for whoever comes.
type listener struct {
	Protocol string         `json:"protocol"` // tcp or udp
	Address  netip.AddrPort `json:"address"`
	// inode is of the socket, by which whoever holds it is found; 0 if nobody does.
	inode uint64
}

// States of include/net/tcp_states.h. A UDP socket that is bound and not connected is in that of a closed one.
const (
	stateListen = "0A"
	stateClosed = "07"
)

// inodeColumn is where the inode of the socket stands, counted from 0.
const inodeColumn = 9

// ports is a range that the kernel takes the ports of outgoing sockets from.
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

// parseListeners reads a file of /proc/net, one of tcp, tcp6, udp and udp6: see proc_pid_net(5).
//
// With UDP every question to a name server has a socket that looks like a listener for as long as it takes, on a port that
// the kernel chose: those ports are left out. Nobody finds a listener there who was not told of it; with TCP all are taken.
func parseListeners(protocol, text string, outgoing ports) ([]listener, error) {
	state := stateListen
	if protocol == "udp" {
		state = stateClosed
	}
	var listeners []listener
	first := true
	for line := range strings.Lines(text) {
		if first { // the names of the columns
			first = false
			continue
		}
		fields := strings.Fields(line)
		if len(fields) <= inodeColumn {
			return nil, fmt.Errorf("line %q of %s makes no sense", line, protocol)
		}
		address, err := parseAddress(fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %q of %s: %w", line, protocol, err)
		}
		if fields[3] != state || (protocol == "udp" && outgoing.contain(address.Port())) {
			continue
		}
		inode, err := strconv.ParseUint(fields[inodeColumn], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q of %s: %w", line, protocol, err)
		}
		listeners = append(listeners, listener{Protocol: protocol, Address: address, inode: inode})
	}
	return listeners, nil
}

var errAddress = errors.New("an address that makes no sense")

// parseAddress reads an address and a port in hexadecimal. The kernel writes an address as words of 32 bits in the order
// of the machine, and all that it runs on here have the least significant byte first.
func parseAddress(s string) (netip.AddrPort, error) {
	address, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(address)
	if !ok || err != nil || (len(raw) != 4 && len(raw) != 16) || len(port) != 4 {
		return netip.AddrPort{}, errAddress
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, errAddress
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.LittleEndian.Uint32(raw[i:]))
	}
	ip, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

func (p Plan) listeners() ([]listener, error) {
	text, err := os.ReadFile(p.at("/proc/sys/net/ipv4/ip_local_port_range"))
	if err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	outgoing, err := parsePorts(string(text))
	if err != nil {
		return nil, fmt.Errorf("list listeners: %w", err)
	}
	var all []listener
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(p.at("/proc/net/" + file))
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(file, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list listeners: %w", err)
		}
		some, err := parseListeners(strings.TrimSuffix(file, "6"), string(text), outgoing)
		if err != nil {
			return nil, fmt.Errorf("list listeners: %w", err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// newListeners are those at addresses where nothing listened before. There may be several at one.
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
