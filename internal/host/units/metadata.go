package units

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Metadata are the addresses of the instance metadata service ("Access instance
// metadata", EC2 User Guide).
var Metadata = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254")}

// addressPrefix is the D-Bus type of one entry of IPAddressDeny=.
type addressPrefix struct {
	Family  int32
	Address []byte
	Length  uint32
}

func metadataAddresses() []addressPrefix {
	var all []addressPrefix
	for _, a := range Metadata {
		family := int32(unix.AF_INET)
		if a.Is6() {
			family = unix.AF_INET6
		}
		all = append(all, addressPrefix{family, a.AsSlice(), uint32(a.BitLen())})
	}
	return all
}

// answerLimit is far above what the service takes, which is on the machine's own
// hypervisor. A filter of the kernel may drop instead of refusing, and every
// start of a listener waits for that.
const answerLimit = 200 * time.Millisecond

// ErrMetadataReached: whoever called can read what the instance's role may do.
var ErrMetadataReached = errors.New("the instance metadata service can be reached from here")

// CheckMetadata tries to reach the instance metadata service and fails if that
// succeeds. It sends nothing.
func CheckMetadata(ctx context.Context) error {
	reached := make(chan error, len(Metadata))
	for _, a := range Metadata {
		go func() { reached <- reach(ctx, a) }()
	}
	var all error
	for range Metadata {
		all = errors.Join(all, <-reached)
	}
	return all
}

func reach(ctx context.Context, a netip.Addr) error {
	dialer := net.Dialer{Timeout: answerLimit}
	conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, 80).String())
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("%s: %w: neither IPAddressDeny= nor the rule of remuda-firewall.service holds", a, ErrMetadataReached)
}
