// The clock of all lanes. Go's own timers are up to a millisecond late, which is more than most requests take; so one
// thread sleeps by the kernel's clock and wakes the lane whose request is due.

package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The longest sleep of the pacer: it looks this often whether the run is over.
const pacerSleepMax = 10 * time.Millisecond

type pacer struct {
	begun time.Time
	asked options
	wakes []chan struct{} // of each lane; none in a closed loop
}

func newPacer(begun time.Time, asked options) *pacer {
	made := &pacer{begun: begun, asked: asked}
	if asked.rate > 0 {
		made.wakes = make([]chan struct{}, asked.lanes())
		for lane := range made.wakes {
			made.wakes[lane] = make(chan struct{}, 1)
		}
	}
	return made
}

// run wakes lanes until `done`. A lane that is not waiting finds one wake-up later, looks at the clock and waits on.
func (p *pacer) run(done <-chan struct{}) {
	if len(p.wakes) == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Sleeps end when they should and not up to 50 µs later. Without it they are only less exact.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for count := 0; ; count++ {
		for lane, wake := range p.wakes {
			if !p.sleepUntil(dueAt(p.begun, p.asked, lane, count), done) {
				return
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}
}

// sleepUntil is false if the run is over.
func (p *pacer) sleepUntil(due time.Time, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		left := time.Until(due)
		if left <= 0 {
			return true
		}
		sleep := unix.NsecToTimespec(int64(min(left, pacerSleepMax)))
		// A signal may end it early; the loop looks at the clock.
		_ = unix.Nanosleep(&sleep, nil)
	}
}

func (p *pacer) now() time.Time {
	return time.Now()
}

func (p *pacer) waitUntilDue(ctx context.Context, lane int, due time.Time) {
	for time.Now().Before(due) {
		select {
		case <-ctx.Done():
			return
		case <-p.wakes[lane]:
		}
	}
}

func (p *pacer) pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
