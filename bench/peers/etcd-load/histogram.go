// Latencies, counted in bounded memory.

package main

import (
	"sync/atomic"
	"time"
)

// Latencies above this are counted as this, in microseconds.
const latencyUsMax = 2_000_000

// histogram counts latencies per microsecond; any number of goroutines may add.
type histogram struct {
	counts []uint64
}

func newHistogram() *histogram {
	return &histogram{counts: make([]uint64, latencyUsMax+1)}
}

func (h *histogram) add(latency time.Duration) {
	us := latency.Microseconds()
	if us < 0 {
		us = 0
	}
	if us > latencyUsMax {
		us = latencyUsMax
	}
	atomic.AddUint64(&h.counts[us], 1)
}

func (h *histogram) count() uint64 {
	var sum uint64
	for n := range h.counts {
		sum += atomic.LoadUint64(&h.counts[n])
	}
	return sum
}

// quantileUs is the latency that a share of all (0 to 1) do not exceed; 0 if there are none.
func (h *histogram) quantileUs(share float64) float64 {
	count := h.count()
	if count == 0 {
		return 0
	}
	wanted := uint64(share * float64(count))
	if wanted < 1 {
		wanted = 1
	}
	var seen uint64
	for us := range h.counts {
		seen += atomic.LoadUint64(&h.counts[us])
		if seen >= wanted {
			return float64(us)
		}
	}
	return latencyUsMax
}
