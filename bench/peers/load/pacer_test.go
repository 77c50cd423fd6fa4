package main

import (
	"context"
	"sync"
	"testing"
	"time"
)

// The kernel's clock is what is tested here: fifty requests, due within 50 ms.
func TestNoLaneIsWokenBeforeItsRequestIsDueAndAllAreWoken(t *testing.T) {
	asked := options{connections: 5, inFlight: 2, rate: 1000}
	begun := time.Now()
	pacer := newPacer(begun, asked)
	done := make(chan struct{})
	var beside, lanes sync.WaitGroup
	beside.Go(func() { pacer.run(done) })
	for lane := range asked.lanes() {
		lanes.Go(func() {
			for count := range 5 {
				due := dueAt(begun, asked, lane, count)
				pacer.waitUntilDue(context.Background(), lane, due)
				if early := time.Until(due); early > 0 {
					t.Errorf("request %d of lane %d: %v early", count, lane, early)
				}
			}
		})
	}
	lanes.Wait()
	close(done)
	beside.Wait()
}

func TestALaneWaitsNoLongerThanTheRun(t *testing.T) {
	asked := options{connections: 1, inFlight: 1, rate: 1}
	pacer := newPacer(time.Now(), asked)
	over, end := context.WithCancel(context.Background())
	end()
	pacer.waitUntilDue(over, 0, time.Now().Add(time.Hour))
	pacer.pause(over, time.Hour)
	done := make(chan struct{})
	close(done)
	pacer.run(done)
}
