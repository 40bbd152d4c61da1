//go:build soak && !(linux && amd64)

package soak_test

import (
	"errors"
	"time"
)

// wallClock is for the machine code of x86_64 alone.
type wallClock struct{}

func openWallClock(int) (*wallClock, error) { return nil, errors.ErrUnsupported }

func (*wallClock) set(time.Duration) error { return errors.ErrUnsupported }

func (*wallClock) close() {}
