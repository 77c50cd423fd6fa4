// Putting the load on: lines, lanes, and when each request is due.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// How long answers to requests in flight are waited for at the end.
	endTimeout = 5 * time.Second
	// Pause of a lane after a request failed.
	errorPause = 100 * time.Millisecond
	// The same with -survive, where it is part of the gap that is measured.
	surviveErrorPause = 5 * time.Millisecond
	// How long making what the load needs may take, and how many requests of it are in flight.
	prepareTimeout = 60 * time.Second
	prepareLanes   = 64
	// What requests are counted as that were due before the end and had no lane until then.
	neverSent = "due but not sent"
)

// A clock is the only way for a lane to know or pass time.
type clock interface {
	now() time.Time
	// waitUntilDue returns when a lane's next request is due, or `ctx` has ended.
	waitUntilDue(ctx context.Context, lane int, due time.Time)
	pause(ctx context.Context, duration time.Duration)
}

// run keeps every lane busy until the time is over.
func run(system system, asked options) (*report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	if err := prepare(ctx, system, asked); err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	lines, err := connectAll(life, system, asked)
	defer func() {
		for _, line := range lines {
			line.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	cpuBefore, err := cpuTime()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	time.AfterFunc(asked.duration+endTimeout, end)
	recorder := newRecorder(asked, begun)
	putOn(life, lines, asked, recorder)
	elapsed := time.Since(begun)
	cpuAfter, err := cpuTime()
	if err != nil {
		return nil, err
	}
	return recorder.report(elapsed, cpuAfter-cpuBefore), nil
}

// prepare makes what the load needs, at the first address that takes it.
func prepare(ctx context.Context, system system, asked options) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	first := newLine(system, asked, 0)
	first.timeout = connectTimeout
	defer first.close()
	var last error
	for range asked.addresses {
		conn, generation, err := first.connected(ctx)
		if err != nil {
			last = err
			continue
		}
		if err := system.prepare(ctx, conn, asked); err != nil {
			last = fmt.Errorf("preparing: %w", err)
			first.moveOn(generation)
			continue
		}
		return nil
	}
	return last
}

// forEachKey calls `store` with each key, many at once; the first error ends it.
func forEachKey(asked options, store func(key int, value []byte) error) error {
	value := []byte(strings.Repeat("x", asked.valueBytes))
	errs := make(chan error, prepareLanes)
	for lane := 0; lane < prepareLanes; lane++ {
		go func() {
			var err error
			for key := lane; key < asked.keys && err == nil; key += prepareLanes {
				err = store(key, value)
			}
			errs <- err
		}()
	}
	var first error
	for lane := 0; lane < prepareLanes; lane++ {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// connectAll makes the lines; those made are returned on errors, too. With -survive they connect when they are needed.
func connectAll(life context.Context, system system, asked options) ([]*line, error) {
	lines := make([]*line, 0, asked.connections)
	for number := 0; number < asked.connections; number++ {
		made := newLine(system, asked, number)
		lines = append(lines, made)
		if asked.survive {
			continue
		}
		if _, _, err := made.connected(life); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// putOn runs all lanes, and the clock and the intervals beside them, to their end.
func putOn(life context.Context, lines []*line, asked options, recorder *recorder) {
	var lanes, beside sync.WaitGroup
	done := make(chan struct{})
	pacer := newPacer(recorder.begun, asked)
	beside.Go(func() { pacer.run(done) })
	beside.Go(func() { recorder.cutIntervals(done) })
	value := []byte(strings.Repeat("x", asked.valueBytes))
	for number := 0; number < asked.lanes(); number++ {
		lane := lane{
			number:   number,
			line:     lines[number%len(lines)],
			asked:    asked,
			value:    value,
			random:   rand.New(rand.NewSource(int64(number))),
			clock:    pacer,
			recorder: recorder,
		}
		lanes.Go(func() { lane.run(life) })
	}
	lanes.Wait()
	close(done)
	beside.Wait()
}

// A lane has one request in flight: the next is sent when it is answered, or when it is due if that is later.
type lane struct {
	number   int
	line     *line
	asked    options
	value    []byte
	random   *rand.Rand
	clock    clock
	recorder *recorder
}

func (l *lane) run(life context.Context) {
	end := l.recorder.begun.Add(l.asked.duration)
	for count := 0; ; count++ {
		from := l.clock.now()
		if l.asked.rate > 0 {
			from = dueAt(l.recorder.begun, l.asked, l.number, count)
			if !from.Before(end) {
				return
			}
			l.clock.waitUntilDue(life, l.number, from)
		}
		if now := l.clock.now(); !now.Before(end) || life.Err() != nil {
			l.countNeverSent(count, end)
			return
		}
		l.request(life, from, end)
	}
}

// dueAt is when a lane's request is due: all lanes' requests together are evenly spaced.
func dueAt(begun time.Time, asked options, lane, count int) time.Time {
	place := float64(lane) + float64(count)*float64(asked.lanes())
	return begun.Add(time.Duration(place * float64(time.Second) / float64(asked.rate)))
}

// countNeverSent counts what was due before the end and could not be sent because the answers before it were late.
func (l *lane) countNeverSent(count int, end time.Time) {
	if l.asked.rate == 0 {
		return
	}
	for ; dueAt(l.recorder.begun, l.asked, l.number, count).Before(end); count++ {
		l.recorder.failed(l.number, neverSent)
	}
}

// request sends one request and counts what becomes of it. With -survive it is tried until it succeeds, or the run's
// time is over.
func (l *lane) request(life context.Context, from, end time.Time) {
	key := l.random.Intn(l.asked.keys)
	writes := l.random.Intn(100) < l.asked.writePercent
	for {
		err := l.try(life, key, writes)
		now := l.clock.now()
		if err == nil {
			l.recorder.succeeded(l.number, now.Sub(from), now, writes)
			return
		}
		l.recorder.failed(l.number, l.reason(err))
		pause := errorPause
		if l.asked.survive {
			pause = surviveErrorPause
		}
		l.clock.pause(life, pause)
		if !l.asked.survive || life.Err() != nil || !l.clock.now().Before(end) {
			return
		}
	}
}

func (l *lane) try(life context.Context, key int, writes bool) error {
	conn, generation, err := l.line.connected(life)
	if err != nil {
		return err
	}
	ctx := life
	if l.asked.survive {
		limited, cancel := context.WithTimeout(life, tryTimeout)
		defer cancel()
		ctx = limited
	}
	if writes {
		err = conn.write(ctx, key, l.value)
	} else {
		err = conn.read(ctx, key)
	}
	if err != nil && l.asked.survive {
		l.line.moveOn(generation)
	}
	return err
}

func (l *lane) reason(err error) string {
	if errors.Is(err, errCannotConnect) {
		return cannotConnect
	}
	return l.line.system.reason(err)
}

// cpuTime is what this process has used so far, user and system.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
