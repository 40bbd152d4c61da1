package small

import (
	"testing"
	"time"
)

func TestGrown(t *testing.T) {
	if !Grown(30) || Grown(3) {
		t.Error("a child is not grown, and a man of thirty is")
	}
}

func TestWithin(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		if Within(n, 1, 3) != want {
			t.Error(n)
		}
	}
}

func TestAny(t *testing.T) {
	if !Any(true, nil) || Any(false, func() bool { return false }) {
		t.Error("one of them is true")
	}
}

func TestMean(t *testing.T) {
	mean, err := Mean(2, -1, 4)
	if mean != 2 || err != nil {
		t.Error(mean, err)
	}
}

func TestCountdown(t *testing.T) {
	if Countdown(3) != 3 {
		t.Error("it takes three steps")
	}
}

func TestSame(t *testing.T) {
	if Same("a") != "a" {
		t.Error("it is another text")
	}
}

func TestWait(t *testing.T) {
	if Wait(3) != 5*time.Second {
		t.Error(Wait(3))
	}
}

func TestUntil(t *testing.T) {
	if Until(3) != 7 || Until(7) != 14 {
		t.Error(Until(3), Until(7))
	}
}

func TestThatFailsAnyway(t *testing.T) { t.Error("it fails without a mutant") }
