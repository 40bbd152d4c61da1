package awstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
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
const listening = "0A"

// listensAt is the port at which a process listens.
func listensAt(pid int) (int, error) {
	own, err := socketsOf(pid)
	if err != nil {
		return 0, err
	}
	for _, table := range []string{"tcp", "tcp6"} {
		rows, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			return 0, err
		}
		for row := range strings.Lines(string(rows)) {
			// sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
			f := strings.Fields(row)
			if len(f) < 10 || f[3] != listening || !own["socket:["+f[9]+"]"] {
				continue
			}
			_, port, _ := strings.Cut(f[1], ":")
			n, err := strconv.ParseUint(port, 16, 16)
			return int(n), err
		}
	}
	return 0, errors.New("it does not listen")
}

// socketsOf are the files that a process has open, as the kernel calls them.
func socketsOf(pid int) (map[string]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, entry := range entries {
		if target, err := os.Readlink(dir + "/" + entry.Name()); err == nil {
			own[target] = true
		}
	}
	return own, nil
}
