package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var someTime = time.UnixMilli(1_700_000_000_000)

func about(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > want/500 {
		t.Errorf("%s: got %v, want about %v", what, got, want)
	}
}

func recorded(asked options) *recorder {
	r := newRecorder(asked, someTime)
	for us := 1; us <= 1000; us++ {
		r.succeeded(us, time.Duration(us)*time.Microsecond, someTime, true)
	}
	return r
}

func TestQuantilesOfAKnownDistribution(t *testing.T) {
	made := recorded(options{}).report(2*time.Second, time.Second)
	for name, us := range map[string]float64{"p50": 500, "p90": 900, "p99": 990, "p999": 999, "max": 1000, "mean": 500.5} {
		about(t, name, made.LatencyUs[name], us)
	}
	if made.Operations != 1000 || made.OperationsPerSecond != 500 || made.ClientCPUPerOperation != 1000 {
		t.Errorf("got %+v", made)
	}
}

func TestExtremesAreCountedAtTheEdges(t *testing.T) {
	r := newRecorder(options{}, someTime)
	r.succeeded(0, time.Hour, someTime, true)
	r.succeeded(1, -time.Second, someTime, true)
	made := r.report(time.Second, 0)
	about(t, "max", made.LatencyUs["max"], float64(latencyMax.Microseconds()))
	if made.Operations != 2 || *made.LatencyUs["p50"] != 0.001 {
		t.Errorf("got %d, %v", made.Operations, *made.LatencyUs["p50"])
	}
}

func TestNothingAnsweredIsNullAndNotZero(t *testing.T) {
	asked := options{cdf: true, survive: true, interval: time.Second}
	r := newRecorder(asked, someTime)
	r.cut(time.Second)
	text, err := json.Marshal(r.report(time.Second, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"p50":null`, `"mean":null`, `"offered_per_second":null`, `"errors":{}`,
		`{"at_ms":1000,"operations":0,"errors":0,"p50_us":null,"p99_us":null}`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	if strings.Contains(string(text), "longest_gap") {
		t.Errorf("a gap without a write: %s", text)
	}
}

func TestTheDistributionAscendsToOne(t *testing.T) {
	asked := options{cdf: true}
	points := recorded(asked).report(time.Second, 0).LatencyCdf
	if len(points) < 100 || len(points) > cdfPoints || points[len(points)-1][1] != 1 {
		t.Fatalf("%d points, the last is %v", len(points), points[len(points)-1])
	}
	for n := 1; n < len(points); n++ {
		if points[n][0] <= points[n-1][0] || points[n][1] <= points[n-1][1] {
			t.Errorf("%v after %v", points[n], points[n-1])
		}
	}
	about(t, "the median", &points[49][0], 500)
	if made := recorded(options{}).report(time.Second, 0); made.LatencyCdf != nil {
		t.Error("a distribution nobody asked for")
	}
}

func TestIntervalsBeginAnew(t *testing.T) {
	r := recorded(options{interval: 100 * time.Millisecond})
	r.failed(0, "late")
	r.cut(100 * time.Millisecond)
	r.succeeded(3, 5*time.Millisecond, someTime, true)
	r.cut(250 * time.Millisecond)
	intervals := r.report(time.Second, 0).Intervals
	if len(intervals) != 2 || intervals[0].Operations != 1000 || intervals[0].Errors != 1 {
		t.Fatalf("got %+v", intervals)
	}
	if intervals[1].Operations != 1 || intervals[1].Errors != 0 || intervals[1].AtMs != 250 {
		t.Errorf("got %+v", intervals[1])
	}
	if p50 := *intervals[1].P50Us; math.Abs(p50-5000) > 100 {
		t.Errorf("p50 %v", p50)
	}
}

func TestReasonsOfErrorsAreBounded(t *testing.T) {
	r := newRecorder(options{}, someTime)
	for n := 0; n < 1000; n++ {
		r.failed(0, fmt.Sprint("reason ", n))
	}
	if len(r.errors) > reasonsMax+1 || r.errors[otherReason] != 1000-reasonsMax {
		t.Errorf("%d reasons, %d others", len(r.errors), r.errors[otherReason])
	}
}

// gapOf is the gap of writes at some times, in milliseconds since someTime.
func gapOf(endMs int, writesMs ...int) *longestGap {
	asked := options{survive: true}
	r := newRecorder(asked, someTime)
	for _, ms := range writesMs {
		r.succeeded(0, time.Millisecond, someTime.Add(time.Duration(ms)*time.Millisecond), true)
	}
	return r.report(time.Duration(endMs)*time.Millisecond, 0).LongestGap
}

func TestTheLongestGapIsBetweenTwoWrites(t *testing.T) {
	got := gapOf(1000, 10, 20, 520, 510, 900, 990)
	begin := float64(someTime.UnixMilli())
	if *got != (longestGap{begin + 20, begin + 520, 500, true}) {
		t.Errorf("got %+v", got)
	}
}

func TestTheLongestGapsAreKeptInOrderAndNoMoreOfThem(t *testing.T) {
	r := newRecorder(options{survive: true}, someTime)
	at := time.Duration(0)
	r.succeeded(0, 1, someTime, true)
	for n := 0; n < 200; n++ {
		at += time.Duration(1+n*37%200) * time.Millisecond // each length from 1 to 200 once, out of order
		r.succeeded(0, 1, someTime.Add(at), true)
	}
	made := r.report(at+150*time.Millisecond, 0)
	got := made.LongestGaps
	if len(got) != gapsMax || got[0] != *made.LongestGap || got[0].Ms != 200 || got[gapsMax-1].Ms != 138 {
		t.Fatalf("%d gaps, from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
	if got[50].Ms != 150 || got[51].Ms != 150 || !got[50].Recovered || got[51].Recovered {
		t.Errorf("got %+v and %+v", got[50], got[51])
	}
}

func TestAGapThatDoesNotEndIsToldAsSuch(t *testing.T) {
	got := gapOf(1000, 10, 20, 120)
	if got.Ms != 880 || got.Recovered {
		t.Errorf("got %+v", got)
	}
}

func TestReadsEndNoGap(t *testing.T) {
	r := newRecorder(options{survive: true}, someTime)
	r.succeeded(0, 1, someTime, true)
	r.succeeded(0, 1, someTime.Add(400*time.Millisecond), false)
	r.succeeded(0, 1, someTime.Add(700*time.Millisecond), true)
	if got := r.report(701*time.Millisecond, 0).LongestGap; got.Ms != 700 {
		t.Errorf("got %+v", got)
	}
}
