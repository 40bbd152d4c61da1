package db_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// asNobody runs fn without the rights of root, which no permission stops: for
// root, the thread's file system user is an unprivileged one until then.
func asNobody(t *testing.T, fn func()) {
	t.Helper()
	if os.Getuid() != 0 {
		fn()
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	fn()
}
