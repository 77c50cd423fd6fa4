package main

import (
	"testing"
	"time"
)

func TestQuantilesOfAKnownDistribution(t *testing.T) {
	h := newHistogram()
	for us := 1; us <= 1000; us++ {
		h.add(time.Duration(us) * time.Microsecond)
	}
	for _, expected := range []struct{ share, us float64 }{{0.5, 500}, {0.99, 990}, {0.999, 999}, {1, 1000}, {0, 1}} {
		if got := h.quantileUs(expected.share); got != expected.us {
			t.Errorf("quantile %v: got %v us, want %v", expected.share, got, expected.us)
		}
	}
	if h.count() != 1000 {
		t.Errorf("count: got %d, want 1000", h.count())
	}
}

func TestExtremesAreCountedAtTheEdges(t *testing.T) {
	h := newHistogram()
	if h.quantileUs(0.5) != 0 {
		t.Error("an empty histogram has no latency")
	}
	h.add(time.Hour)
	h.add(-time.Second)
	if h.count() != 2 || h.quantileUs(1) != latencyUsMax || h.quantileUs(0.5) != 0 {
		t.Errorf("got %d, %v, %v", h.count(), h.quantileUs(1), h.quantileUs(0.5))
	}
}
