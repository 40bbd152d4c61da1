//go:build soak

package soak_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"
)

// wallClock is the wall clock of one process under test, which may be set while the process runs. The kernel has one for the whole machine, and a
// library such as libfaketime is not loaded into a static program of Go, which reads the clock by the kernel's vDSO. So the copy of the vDSO that the
// process has is changed, after it was executed and before its first instruction: its clock_gettime asks the kernel by a system call, and adds an
// offset to the time of day. The monotonic clock stays as it is, as when an operator or a time server sets the clock of a machine.
type wallClock struct {
	memory *os.File // of the process
	at     int64    // of the offset in it, in seconds
}

// gettime is clock_gettime(2) with an offset: the system call, and for the clock 0, CLOCK_REALTIME, the offset is added to the seconds.
var gettime = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228 (clock_gettime)
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne ret
	0x48, 0x8b, 0x0d, 0x0e, 0x00, 0x00, 0x00, // mov rcx, [rip+14]: the offset below
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,                                                       // ret
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, // so that the offset is aligned, as the function is
	0, 0, 0, 0, 0, 0, 0, 0, // the offset
}

// openWallClock changes the vDSO of a process that stands at the first instruction of its program.
func openWallClock(pid int) (*wallClock, error) {
	start, end, err := vdsoOf(pid)
	if err != nil {
		return nil, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	function, err := findGettime(memory, start, end)
	if err == nil {
		_, err = memory.WriteAt(gettime, start+function)
	}
	if err != nil {
		_ = memory.Close() // it was only read
		return nil, fmt.Errorf("change the vDSO of process %d: %w", pid, err)
	}
	return &wallClock{memory: memory, at: start + function + int64(len(gettime)) - 8}, nil
}

func vdsoOf(pid int) (start, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, fmt.Errorf("process %d has no vDSO", pid)
}

// findGettime returns where the function is in the vDSO.
func findGettime(memory *os.File, start, end int64) (int64, error) {
	image := make([]byte, end-start)
	if _, err := memory.ReadAt(image, start); err != nil {
		return 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(gettime)) {
			return int64(s.Value), nil
		}
	}
	return 0, fmt.Errorf("no clock_gettime of %d bytes in it", len(gettime))
}

// set has the process read a time of day that is so far ahead of that of the machine.
func (c *wallClock) set(ahead time.Duration) error {
	offset := binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead/time.Second)))
	_, err := c.memory.WriteAt(offset, c.at)
	return err
}

func (c *wallClock) close() { _ = c.memory.Close() } // nothing is buffered
