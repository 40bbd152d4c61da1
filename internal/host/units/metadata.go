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

// Metadata are the addresses of the instance metadata service ("Access instance metadata", EC2 User Guide).
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

// How long to wait for an answer. The service is on the machine's own hypervisor
// and takes less than a millisecond. The start of every listener waits for this.
const (
	answerLimit = 200 * time.Millisecond
	// refusedLimit applies after the kernel has just refused to send a datagram there.
	refusedLimit = 5 * time.Millisecond
)

// ErrMetadataReached means that the calling process can reach the instance metadata, and
// with it the credentials of the instance's role.
var ErrMetadataReached = errors.New("the instance metadata service can be reached from here")

// CheckMetadata tries to reach the instance metadata service and fails if that succeeds.
func CheckMetadata(ctx context.Context) error {
	reached := make(chan error, len(Metadata))
	for _, a := range Metadata {
		go func() { reached <- reach(ctx, netip.AddrPortFrom(a, 80).String()) }()
	}
	var all error
	for range Metadata {
		all = errors.Join(all, <-reached)
	}
	return all
}

func reach(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: answerLimit}
	if refused(ctx, dialer, address) {
		dialer.Timeout = refusedLimit
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("%s: %w: neither IPAddressDeny= nor the rule of remuda-firewall.service holds", address, ErrMetadataReached)
}

// refused reports whether the kernel refuses an empty datagram. It does that at once,
// while a connection that it drops just gets no answer.
func refused(ctx context.Context, dialer net.Dialer, address string) bool {
	conn, err := dialer.DialContext(ctx, "udp", address)
	if err != nil {
		return true
	}
	defer conn.Close()
	_, err = conn.Write(nil)
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}
