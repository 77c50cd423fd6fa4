// Command etcd-load puts a closed loop of writes on etcd and prints what it measured as one JSON
// object. It does what `quorumwire bench` does, over etcd's own client; it does not measure servers.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// Limits of what can be asked for.
const (
	connectionsMax = 4096
	inFlightMax    = 4096
	secondsMax     = 3600
	valueBytesMax  = 1 << 20
	keysMax        = 10_000_000
)

type options struct {
	endpoints   []string
	connections int
	inFlight    int
	duration    time.Duration
	valueBytes  int
	keys        int
}

// report has the same names as the JSON of `quorumwire bench`.
type report struct {
	Operations            uint64             `json:"operations"`
	Seconds               float64            `json:"seconds"`
	OperationsPerSecond   float64            `json:"operations_per_second"`
	LatencyUs             map[string]float64 `json:"latency_us"`
	Errors                map[string]uint64  `json:"errors"`
	ClientCPUPerOperation float64            `json:"client_cpu_us_per_operation"`
}

func main() {
	asked, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd-load:", err)
		os.Exit(2)
	}
	measured, err := run(asked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd-load:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(measured.report()); err != nil {
		fmt.Fprintln(os.Stderr, "etcd-load: writing the report:", err)
		os.Exit(1)
	}
	if measured.latencies.count() == 0 {
		os.Exit(1)
	}
}

func parse(arguments []string) (options, error) {
	var asked options
	flags := flag.NewFlagSet("etcd-load", flag.ContinueOnError)
	endpoints := flags.String("endpoints", "127.0.0.1:2379", "where to connect, HOST:PORT,...; connections take turns")
	flags.IntVar(&asked.connections, "connections", 8, "connections")
	flags.IntVar(&asked.inFlight, "in-flight", 64, "requests in flight per connection")
	seconds := flags.Int("seconds", 10, "how long, in seconds")
	flags.IntVar(&asked.valueBytes, "value-bytes", 64, "bytes of a value")
	flags.IntVar(&asked.keys, "keys", 1000, "number of different keys; which one is next is random")
	if err := flags.Parse(arguments); err != nil {
		return asked, err
	}
	if flags.NArg() > 0 {
		return asked, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	asked.endpoints = strings.Split(*endpoints, ",")
	asked.duration = time.Duration(*seconds) * time.Second
	for _, limit := range []struct {
		name       string
		given, max int
	}{
		{"connections", asked.connections, connectionsMax},
		{"in-flight", asked.inFlight, inFlightMax},
		{"seconds", *seconds, secondsMax},
		{"value-bytes", asked.valueBytes, valueBytesMax},
		{"keys", asked.keys, keysMax},
	} {
		if limit.given < 1 || limit.given > limit.max {
			return asked, fmt.Errorf("%s: %d is refused; allowed: 1 to %d", limit.name, limit.given, limit.max)
		}
	}
	return asked, nil
}
