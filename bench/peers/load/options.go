// What can be asked for, and what is refused.

package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of what can be asked for.
const (
	addressesMax   = 16
	connectionsMax = 4096
	inFlightMax    = 4096
	lanesMax       = 1 << 16
	secondsMax     = 3600
	valueBytesMax  = 1 << 20
	keysMax        = 10_000_000
	rateMax        = 10_000_000
	intervalMsMax  = 60_000
	intervalsMax   = 10_000
	replicasMax    = 7
)

type options struct {
	system       string
	addresses    []string
	connections  int
	inFlight     int
	duration     time.Duration
	valueBytes   int
	keys         int
	writePercent int
	rate         int           // 0: a closed loop
	interval     time.Duration // 0: none
	cdf          bool
	survive      bool
	prepareOnly  bool
	replicas     int
}

// lanes is how many requests are in flight at once, each with a goroutine of its own.
func (o options) lanes() int {
	return o.connections * o.inFlight
}

func parse(arguments []string) (options, error) {
	var asked options
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	names := systemNames()
	flags.StringVar(&asked.system, "system", "", "what the servers are: "+strings.Join(names, ", "))
	addresses := flags.String("addr", "", "where to connect, HOST:PORT,...; connections take turns")
	flags.IntVar(&asked.connections, "connections", 8, "connections")
	flags.IntVar(&asked.inFlight, "in-flight", 64, "requests in flight per connection")
	seconds := flags.Int("seconds", 10, "how long, in seconds")
	flags.IntVar(&asked.valueBytes, "value-bytes", 64, "bytes of a value")
	flags.IntVar(&asked.keys, "keys", 1000, "number of different keys; which one is next is random")
	flags.IntVar(&asked.writePercent, "write-percent", 100, "of 100 requests so many write, the others read; keys are stored first")
	flags.IntVar(&asked.rate, "rate", 0, "open loop: requests due per second, in all; latency counts from when one was due (default: closed loop)")
	flags.BoolVar(&asked.cdf, "cdf", false, "add the distribution of latencies")
	intervalMs := flags.Int("interval-ms", 0, "add figures of every so many milliseconds (default: none)")
	flags.BoolVar(&asked.survive, "survive", false, "try again at the next address what failed, and tell the longest time without a write")
	flags.BoolVar(&asked.prepareOnly, "prepare", false, "only make what the load needs (keys, ZooKeeper's nodes, a bucket of NATS), and end")
	flags.IntVar(&asked.replicas, "replicas", 3, "of the bucket that is made; NATS only")
	if err := flags.Parse(arguments); err != nil {
		return asked, err
	}
	if flags.NArg() > 0 {
		return asked, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	asked.addresses = strings.Split(*addresses, ",")
	asked.duration = time.Duration(*seconds) * time.Second
	asked.interval = time.Duration(*intervalMs) * time.Millisecond
	for _, limit := range []struct {
		name            string
		given, min, max int
	}{
		{"connections", asked.connections, 1, connectionsMax},
		{"in-flight", asked.inFlight, 1, inFlightMax},
		{"connections times in-flight", asked.lanes(), 1, lanesMax},
		{"seconds", *seconds, 1, secondsMax},
		{"value-bytes", asked.valueBytes, 1, valueBytesMax},
		{"keys", asked.keys, 1, keysMax},
		{"write-percent", asked.writePercent, 0, 100},
		{"rate", asked.rate, 0, rateMax},
		{"interval-ms", *intervalMs, 0, intervalMsMax},
		{"replicas", asked.replicas, 1, replicasMax},
		{"number of addresses in addr", len(asked.addresses), 1, addressesMax},
	} {
		if limit.given < limit.min || limit.given > limit.max {
			return asked, fmt.Errorf("%s: %d is refused; allowed: %d to %d", limit.name, limit.given, limit.min, limit.max)
		}
	}
	return asked, asked.check(names)
}

// check refuses what each value allows but not all together.
func (o options) check(names []string) error {
	if !slices.Contains(names, o.system) {
		return fmt.Errorf("system: %q is refused; allowed: %s", o.system, strings.Join(names, ", "))
	}
	for _, address := range o.addresses {
		if !strings.Contains(address, ":") {
			return fmt.Errorf("addr: %q is refused; allowed: HOST:PORT,...", address)
		}
	}
	if o.interval > 0 && int(o.duration/o.interval) > intervalsMax {
		return fmt.Errorf("interval-ms: %d is refused; allowed: at most %d intervals in all", o.interval.Milliseconds(), intervalsMax)
	}
	if o.system == natsName && o.writePercent < 100 {
		return fmt.Errorf("write-percent: %d is refused; allowed: 100, because NATS has no linearizable read", o.writePercent)
	}
	return nil
}
