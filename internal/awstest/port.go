package awstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// freePort is a port without a listener at this moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// anyPort leaves it to the program.
func anyPort() (int, error) { return 0, nil }

// listening is the state of a listening socket in /proc/net/tcp (proc(5)).
const listening = 0x0A

// listensAt is the port at which a process listens.
func listensAt(pid int) (int, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	open, err := process.FileDescriptorTargets()
	if err != nil {
		return 0, err
	}
	// The sockets of that process's network namespace. /proc/net is that of this process's main thread,
	// which a test may have moved into another one.
	fs, err := procfs.NewFS(procfs.DefaultMountPoint + "/" + strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	//lint:ignore SA1019 what it is deprecated for, netlink sockets, needs rights that a test may not have
	for _, table := range []func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6} {
		sockets, err := table()
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			return 0, err
		}
		for _, s := range sockets {
			if s.St == listening && slices.Contains(open, fmt.Sprintf("socket:[%d]", s.Inode)) {
				return int(s.LocalPort), nil
			}
		}
	}
	return 0, errors.New("it does not listen")
}
