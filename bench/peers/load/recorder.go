// What was measured, counted in bounded memory, and the report made of it.

package main

import (
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Latencies above this are counted as this.
	latencyMax = time.Minute
	// How exact latencies are kept: one in a thousand, and one in a hundred for those of an interval.
	digits         = 3
	digitsInterval = 2
	// Lanes share so many places to count at, so that they seldom wait for each other.
	shardCount = 16
	// Different reasons of errors; further ones are counted as otherReason.
	reasonsMax  = 32
	otherReason = "other"
	cdfPoints   = 200
	// How many gaps are kept, the longest. A kill's may not be the longest of a run: on a busy machine all processes
	// stand still now and then.
	gapsMax = 64
)

type shard struct {
	mutex     sync.Mutex
	latencies *hdrhistogram.Histogram
	interval  *hdrhistogram.Histogram // since the last cut; nil if there are no intervals
}

type recorder struct {
	asked  options
	begun  time.Time
	shards [shardCount]shard

	mutex          sync.Mutex
	errors         map[string]uint64
	intervalErrors uint64
	intervals      []interval
	gaps           gaps
}

func newRecorder(asked options, begun time.Time) *recorder {
	made := &recorder{asked: asked, begun: begun, errors: map[string]uint64{}}
	for n := range made.shards {
		made.shards[n].latencies = hdrhistogram.New(1, latencyMax.Nanoseconds(), digits)
		if asked.interval > 0 {
			made.shards[n].interval = hdrhistogram.New(1, latencyMax.Nanoseconds(), digitsInterval)
		}
	}
	return made
}

func (r *recorder) succeeded(lane int, latency time.Duration, now time.Time, wrote bool) {
	ns := min(max(latency, 1), latencyMax).Nanoseconds()
	shard := &r.shards[lane%shardCount]
	shard.mutex.Lock()
	// Cannot fail: all values up to latencyMax are kept.
	_ = shard.latencies.RecordValue(ns)
	if shard.interval != nil {
		_ = shard.interval.RecordValue(ns)
	}
	shard.mutex.Unlock()
	if wrote && r.asked.survive {
		r.mutex.Lock()
		r.gaps.wrote(now)
		r.mutex.Unlock()
	}
}

func (r *recorder) failed(_ int, reason string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, known := r.errors[reason]; !known && len(r.errors) >= reasonsMax {
		reason = otherReason
	}
	r.errors[reason]++
	r.intervalErrors++
}

// cutIntervals ends an interval whenever its time is over, until `done`, and then the last.
func (r *recorder) cutIntervals(done <-chan struct{}) {
	if r.asked.interval == 0 {
		return
	}
	ticker := time.NewTicker(r.asked.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.cut(time.Since(r.begun))
		case <-done:
			r.cut(time.Since(r.begun))
			return
		}
	}
}

// cut ends an interval and begins the next. A tick that comes late makes one long interval, which says when it ended.
func (r *recorder) cut(at time.Duration) {
	all := hdrhistogram.New(1, latencyMax.Nanoseconds(), digitsInterval)
	for n := range r.shards {
		shard := &r.shards[n]
		shard.mutex.Lock()
		all.Merge(shard.interval)
		shard.interval.Reset()
		shard.mutex.Unlock()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.intervals) <= intervalsMax+int(endTimeout/r.asked.interval) {
		r.intervals = append(r.intervals, interval{
			AtMs:       milliseconds(at),
			Operations: all.TotalCount(),
			Errors:     r.intervalErrors,
			P50Us:      percentileUs(all, 50),
			P99Us:      percentileUs(all, 99),
		})
	}
	r.intervalErrors = 0
}

// A span is a time between two successful writes.
type span struct {
	from, to time.Time
}

func (s span) length() time.Duration {
	return s.to.Sub(s.from)
}

// gaps are the longest spans, the longest first.
type gaps struct {
	last    time.Time
	longest []span
}

func (g *gaps) wrote(now time.Time) {
	// Lanes may come out of order by a little.
	if !g.last.IsZero() && !now.After(g.last) {
		return
	}
	if !g.last.IsZero() {
		g.keep(span{g.last, now})
	}
	g.last = now
}

func (g *gaps) keep(found span) {
	if len(g.longest) == gapsMax {
		if found.length() <= g.longest[gapsMax-1].length() {
			return
		}
		g.longest = g.longest[:gapsMax-1]
	}
	at := sort.Search(len(g.longest), func(n int) bool { return g.longest[n].length() < found.length() })
	g.longest = slices.Insert(g.longest, at, found)
}

// report is called once, when all lanes have ended.
func (r *recorder) report(elapsed, clientCPU time.Duration) *report {
	all := hdrhistogram.New(1, latencyMax.Nanoseconds(), digits)
	for n := range r.shards {
		all.Merge(r.shards[n].latencies)
	}
	count := all.TotalCount()
	made := &report{
		Operations:          count,
		Seconds:             elapsed.Seconds(),
		OperationsPerSecond: float64(count) / elapsed.Seconds(),
		LatencyUs: map[string]*float64{
			"p50":  percentileUs(all, 50),
			"p90":  percentileUs(all, 90),
			"p99":  percentileUs(all, 99),
			"p999": percentileUs(all, 99.9),
			"max":  percentileUs(all, 100),
			"mean": nil,
		},
		Errors:                r.errors,
		ClientCPUPerOperation: float64(clientCPU.Microseconds()) / math.Max(float64(count), 1),
		Intervals:             r.intervals,
	}
	if count > 0 {
		mean := all.Mean() / 1e3
		made.LatencyUs["mean"] = &mean
	}
	if r.asked.rate > 0 {
		offered := float64(r.asked.rate)
		made.OfferedPerSecond = &offered
	}
	if r.asked.cdf {
		made.LatencyCdf = cdf(all)
	}
	if r.asked.survive {
		made.LongestGaps = r.gaps.report(r.begun.Add(elapsed))
		if len(made.LongestGaps) > 0 {
			made.LongestGap = &made.LongestGaps[0]
		}
	}
	return made
}

// report has the same names as the JSON of `quorumwire bench`.
type report struct {
	Operations            int64               `json:"operations"`
	Seconds               float64             `json:"seconds"`
	OperationsPerSecond   float64             `json:"operations_per_second"`
	LatencyUs             map[string]*float64 `json:"latency_us"`
	Errors                map[string]uint64   `json:"errors"`
	ClientCPUPerOperation float64             `json:"client_cpu_us_per_operation"`
	OfferedPerSecond      *float64            `json:"offered_per_second"`
	LatencyCdf            [][2]float64        `json:"latency_cdf,omitempty"`
	Intervals             []interval          `json:"intervals,omitempty"`
	LongestGap            *longestGap         `json:"longest_gap,omitempty"`
	LongestGaps           []longestGap        `json:"longest_gaps,omitempty"`
}

type interval struct {
	AtMs       float64  `json:"at_ms"`
	Operations int64    `json:"operations"`
	Errors     uint64   `json:"errors"`
	P50Us      *float64 `json:"p50_us"`
	P99Us      *float64 `json:"p99_us"`
}

type longestGap struct {
	FromUnixMs float64 `json:"from_unix_ms"`
	ToUnixMs   float64 `json:"to_unix_ms"`
	Ms         float64 `json:"ms"`
	// Recovered is false if the gap lasted to the end of the run: it is then longer than what is told.
	Recovered bool `json:"recovered"`
}

// report counts the time from the last write to the end of the run, too: a system that does not come back would
// otherwise have the shortest gap of all. The longest first; nil if nothing was ever written.
func (g gaps) report(end time.Time) []longestGap {
	if g.last.IsZero() {
		return nil
	}
	if end.Before(g.last) {
		end = g.last
	}
	all := gaps{longest: slices.Clone(g.longest)}
	all.keep(span{g.last, end})
	made := []longestGap{}
	for _, each := range all.longest {
		made = append(made, longestGap{unixMs(each.from), unixMs(each.to), milliseconds(each.length()), each.from.Before(g.last)})
	}
	return made
}

// percentileUs is nil where nothing was counted.
func percentileUs(of *hdrhistogram.Histogram, percentile float64) *float64 {
	if of.TotalCount() == 0 {
		return nil
	}
	us := float64(of.ValueAtPercentile(percentile)) / 1e3
	return &us
}

// cdf has a point for each percent, and closer ones towards the slowest request.
func cdf(of *hdrhistogram.Histogram) [][2]float64 {
	points := [][2]float64{}
	if of.TotalCount() == 0 {
		return points
	}
	for n := 1; n <= cdfPoints; n++ {
		fraction := 1.0
		if n <= 98 {
			fraction = float64(n) / 100
		} else if n < cdfPoints {
			// From 0.98 on, 20 points for each nine.
			fraction = 1 - 0.02*math.Pow(10, -float64(n-98)/20)
		}
		us := float64(of.ValueAtPercentile(fraction*100)) / 1e3
		if last := len(points) - 1; last >= 0 && points[last][0] == us {
			points[last][1] = fraction
			continue
		}
		points = append(points, [2]float64{us, fraction})
	}
	return points
}

func unixMs(at time.Time) float64 {
	return float64(at.UnixMicro()) / 1e3
}

func milliseconds(of time.Duration) float64 {
	return float64(of.Microseconds()) / 1e3
}
