package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens an address; name is the flag or key that gave it.
func listen(name, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(name, addr, err)
	}
	return l, nil
}

// listenError says what is wrong with an address, and what to do about it.
func listenError(name, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use by another process, such as another controld; end that one, or give another port: %w", name, addr, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not listen on %s; give a port from 1024 on, or the capability CAP_NET_BIND_SERVICE: %w", name, addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is not an address of this machine; give one of its own, or 0.0.0.0 for all of them: %w", name, addr, err)
	}
	return fmt.Errorf("%s: cannot listen on %s: %w", name, addr, err)
}
