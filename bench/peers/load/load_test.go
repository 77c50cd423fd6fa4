package main

import (
	"context"
	"errors"
	"math/rand"
	"net"
	"slices"
	"testing"
	"time"
)

// handClock moves only when somebody waits or a request takes time.
type handClock struct {
	at time.Time
}

func (c *handClock) now() time.Time { return c.at }

func (c *handClock) waitUntilDue(_ context.Context, _ int, due time.Time) {
	if c.at.Before(due) {
		c.at = due
	}
}

func (c *handClock) pause(_ context.Context, duration time.Duration) {
	c.at = c.at.Add(duration)
}

var errFake = errors.New("fake")

// fakeSystem answers after the times it is given, in turn; the last one stays. Negative: it fails after that time.
type fakeSystem struct {
	clock     *handClock
	takes     []time.Duration
	connected []string
	writes    int
	reads     int
	prepared  []string
	refuses   string // the address that does not prepare
}

func (f *fakeSystem) connect(_, _ context.Context, address string) (connection, error) {
	f.connected = append(f.connected, address)
	return f, nil
}

func (f *fakeSystem) prepare(context.Context, connection, options) error {
	address := f.connected[len(f.connected)-1]
	f.prepared = append(f.prepared, address)
	if address == f.refuses {
		return errFake
	}
	return nil
}

func (f *fakeSystem) reason(error) string { return "failed" }

func (f *fakeSystem) write(context.Context, int, []byte) error {
	f.writes++
	return f.answer()
}

func (f *fakeSystem) read(context.Context, int) error {
	f.reads++
	return f.answer()
}

func (f *fakeSystem) answer() error {
	takes := f.takes[0]
	if len(f.takes) > 1 {
		f.takes = f.takes[1:]
	}
	f.clock.at = f.clock.at.Add(takes.Abs())
	if takes < 0 {
		return errFake
	}
	return nil
}

func (f *fakeSystem) close() {}

// listeners are addresses somebody listens at, which is all that a line looks at itself.
func listeners(t *testing.T, count int) []string {
	t.Helper()
	var addresses []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// oneLane runs one lane against a fake to its end.
func oneLane(t *testing.T, fake *fakeSystem, asked options) *report {
	t.Helper()
	asked.connections, asked.inFlight, asked.keys = 1, 1, 10
	if asked.addresses == nil {
		asked.addresses = listeners(t, 1)
	}
	fake.clock = &handClock{someTime}
	recorder := newRecorder(asked, someTime)
	lane := lane{
		line: newLine(fake, asked, 0), asked: asked, random: rand.New(rand.NewSource(1)),
		clock: fake.clock, recorder: recorder,
	}
	lane.run(context.Background())
	return recorder.report(fake.clock.at.Sub(someTime), 0)
}

func TestAClosedLoopSendsWhenItIsAnswered(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{time.Millisecond}}
	got := oneLane(t, fake, options{duration: time.Second, writePercent: 100})
	if got.Operations != 1000 || got.OfferedPerSecond != nil || fake.reads != 0 {
		t.Errorf("got %+v", got)
	}
}

// A server that stands still for half a second delays all requests that are due meanwhile, and each of them counts.
func TestInAnOpenLoopLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{500 * time.Millisecond, time.Millisecond}}
	got := oneLane(t, fake, options{duration: 2 * time.Second, writePercent: 100, rate: 100})
	if got.Operations != 200 || *got.OfferedPerSecond != 100 {
		t.Fatalf("got %+v", got)
	}
	about(t, "max", got.LatencyUs["max"], 500_000)
	// The k-th request waited for about 500 - 9 k ms: some 55 of 200 were late, and a tenth of all by more than 300 ms.
	if *got.LatencyUs["p90"] < 300_000 || *got.LatencyUs["p50"] > 1_100 {
		t.Errorf("p90 %v, p50 %v", *got.LatencyUs["p90"], *got.LatencyUs["p50"])
	}
}

func TestWhatWasDueAndNeverSentIsCounted(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{100 * time.Millisecond}}
	got := oneLane(t, fake, options{duration: time.Second, writePercent: 100, rate: 100})
	if got.Operations != 10 || got.Errors[neverSent] != 90 {
		t.Errorf("got %d and %v", got.Operations, got.Errors)
	}
}

func TestRequestsOfAllLanesAreEvenlySpaced(t *testing.T) {
	asked := options{connections: 2, inFlight: 2, rate: 1000}
	var due []time.Duration
	for lane := range 4 {
		for count := range 5 {
			due = append(due, dueAt(someTime, asked, lane, count).Sub(someTime))
		}
	}
	slices.Sort(due)
	for n, at := range due {
		if at != time.Duration(n)*time.Millisecond {
			t.Errorf("request %d is due at %v", n, at)
		}
	}
}

func TestReadsAndWritesAreMixedAsAsked(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{time.Millisecond}}
	oneLane(t, fake, options{duration: 10 * time.Second, writePercent: 10})
	if fake.writes+fake.reads != 10_000 || fake.writes < 800 || fake.writes > 1200 {
		t.Errorf("%d writes, %d reads", fake.writes, fake.reads)
	}
}

func TestWithSurviveARequestIsTriedAgainAtTheNextAddress(t *testing.T) {
	fails := -100 * time.Millisecond
	fake := &fakeSystem{takes: []time.Duration{time.Millisecond, fails, fails, time.Millisecond}}
	asked := options{duration: 400 * time.Millisecond, writePercent: 100, survive: true, addresses: listeners(t, 3)}
	got := oneLane(t, fake, asked)
	if got.Errors["failed"] != 2 || !slices.Equal(fake.connected, asked.addresses) {
		t.Errorf("%v; connected to %v of %v", got.Errors, fake.connected, asked.addresses)
	}
	// Two tries and two pauses, and the one that succeeds.
	wanted := 2*100 + 2*float64(surviveErrorPause.Milliseconds()) + 1
	if got.LongestGap == nil || got.LongestGap.Ms != wanted || !got.LongestGap.Recovered {
		t.Errorf("gap %+v, want %v ms", got.LongestGap, wanted)
	}
	about(t, "max", got.LatencyUs["max"], wanted*1000)
}

func TestWithoutSurviveAFailureIsCountedAndTheConnectionStays(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{-time.Millisecond, time.Millisecond}}
	got := oneLane(t, fake, options{duration: time.Second, writePercent: 100, addresses: listeners(t, 2)})
	if got.Errors["failed"] != 1 || len(fake.connected) != 1 || got.LongestGap != nil {
		t.Errorf("%v, connected %v", got.Errors, fake.connected)
	}
	// The pause after it, and the rest.
	if wanted := int64(1000 - 1 - errorPause.Milliseconds()); got.Operations != wanted {
		t.Errorf("%d operations, want %d", got.Operations, wanted)
	}
}

func TestASystemThatNeverComesBackEndsWithTheRun(t *testing.T) {
	fake := &fakeSystem{takes: []time.Duration{time.Millisecond, -50 * time.Millisecond}}
	got := oneLane(t, fake, options{duration: time.Second, writePercent: 100, survive: true})
	if got.Operations != 1 || got.LongestGap.Recovered || got.LongestGap.Ms < 999 {
		t.Errorf("%d operations, gap %+v", got.Operations, got.LongestGap)
	}
}

func TestAnAddressNobodyListensAtIsLeftForTheNext(t *testing.T) {
	addresses := listeners(t, 2)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addresses[0] = nobody.Addr().String()
	nobody.Close()
	fake := &fakeSystem{takes: []time.Duration{time.Millisecond}}
	got := oneLane(t, fake, options{duration: time.Second, writePercent: 100, survive: true, addresses: addresses})
	if got.Errors[cannotConnect] != 1 || !slices.Equal(fake.connected, addresses[1:]) || got.Operations == 0 {
		t.Errorf("%v, connected %v", got.Errors, fake.connected)
	}
}

func TestAFailureOfAnEarlierConnectionLeavesTheNewOneAlone(t *testing.T) {
	fake := &fakeSystem{}
	l := newLine(fake, options{addresses: listeners(t, 3), survive: true}, 0)
	_, first, _ := l.connected(context.Background())
	l.moveOn(first)
	_, second, _ := l.connected(context.Background())
	l.moveOn(first)
	if _, third, _ := l.connected(context.Background()); third != second || len(fake.connected) != 2 {
		t.Errorf("generation %d, connected %v", third, fake.connected)
	}
}

func TestWhatTheLoadNeedsIsMadeAtTheFirstAddressThatTakesIt(t *testing.T) {
	addresses := listeners(t, 3)
	fake := &fakeSystem{refuses: addresses[0]}
	if err := prepare(context.Background(), fake, options{addresses: addresses}); err != nil {
		t.Error(err)
	}
	if !slices.Equal(fake.prepared, addresses[:2]) {
		t.Errorf("prepared %v of %v", fake.prepared, addresses)
	}
	alone := &fakeSystem{refuses: addresses[0]}
	if err := prepare(context.Background(), alone, options{addresses: addresses[:1]}); !errors.Is(err, errFake) {
		t.Errorf("got %v", err)
	}
}

func TestEveryKeyIsStoredAndAnErrorIsTold(t *testing.T) {
	asked := options{keys: 1000, valueBytes: 8}
	stored := make(chan int, asked.keys)
	if err := forEachKey(asked, func(key int, _ []byte) error { stored <- key; return nil }); err != nil {
		t.Fatal(err)
	}
	close(stored)
	seen := map[int]bool{}
	for key := range stored {
		seen[key] = true
	}
	if len(seen) != asked.keys {
		t.Errorf("%d keys", len(seen))
	}
	err := forEachKey(asked, func(key int, _ []byte) error {
		if key == 500 {
			return errFake
		}
		return nil
	})
	if !errors.Is(err, errFake) {
		t.Errorf("got %v", err)
	}
}
