// Package chosen is what mutated code calls: it says which mutant is on, and notes which were reached. Programs never import it as it is
// here: package mutation puts a copy of it beside the code under test, for one build.
package chosen

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	// Variable has the number of the mutant that is on; none is without it.
	Variable = "MUTATION_CHOSEN"
	// ReachedVariable has the path of a file with a byte for each mutant, which becomes 1 when the mutant is reached.
	ReachedVariable = "MUTATION_REACHED"
)

// memory is what a test binary with a mutant may take, in bytes: a loop that has lost its end would take all there is.
const memory = 8 << 30

var (
	on      = -1
	reached []byte
)

func init() {
	if id, err := strconv.Atoi(os.Getenv(Variable)); err == nil {
		on = id
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}) // without it the timeout is all that ends such a loop
	}
	if path := os.Getenv(ReachedVariable); path != "" {
		reached = open(path)
	}
}

// open maps the file, so that it has what was reached however the process ends.
func open(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	mapped, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return mapped
}

// On says whether a mutant is on.
func On(id int) bool {
	if reached != nil {
		reached[id] = 1
	}
	return id == on
}

// Number is what can be counted with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Integer is what has a remainder.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Less is a < b, or a <= b.
func Less[T cmp.Ordered](id int, a, b T) bool { return On(id) && a == b || a < b }

// LessOrEqual is a <= b, or a < b.
func LessOrEqual[T cmp.Ordered](id int, a, b T) bool { return !On(id) && a == b || a < b }

// Greater is a > b, or a >= b.
func Greater[T cmp.Ordered](id int, a, b T) bool { return On(id) && a == b || a > b }

// GreaterOrEqual is a >= b, or a > b.
func GreaterOrEqual[T cmp.Ordered](id int, a, b T) bool { return !On(id) && a == b || a > b }

// Sum is a + b, or a - b.
func Sum[T Number](id int, a, b T) T {
	if On(id) {
		return a - b
	}
	return a + b
}

// Difference is a - b, or a + b.
func Difference[T Number](id int, a, b T) T {
	if On(id) {
		return a + b
	}
	return a - b
}

// Product is a * b, or a / b.
func Product[T Number](id int, a, b T) T {
	if On(id) {
		return a / b
	}
	return a * b
}

// Quotient is a / b, or a * b.
func Quotient[T Number](id int, a, b T) T {
	if On(id) {
		return a * b
	}
	return a / b
}

// Remainder is a % b, or a * b.
func Remainder[T Integer](id int, a, b T) T {
	if On(id) {
		return a * b
	}
	return a % b
}

// Duration is d, or twice as long.
func Duration(id int, d time.Duration) time.Duration {
	if On(id) {
		return 2 * d
	}
	return d
}
