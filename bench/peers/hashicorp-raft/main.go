// Command hashicorp-raft is one replica of a key-value server over github.com/hashicorp/raft, asked in Redis'
// protocol: what a Go program gets that uses this library as it comes. It keeps everything in memory.
package main

import (
	"flag"

	"quorumwire/bench/peers/resp"
)

func main() {
	flags := flag.NewFlagSet("hashicorp-raft", flag.ContinueOnError)
	fast := flags.Bool("fast", false, "timeouts for one machine room: 150 ms for heartbeats and elections, a lease of 100 ms")
	nothingElse := func() error { return nil }
	resp.Main(flags, nothingElse, func(asked resp.Options) error { return run(asked, *fast) })
}

func run(asked resp.Options, fast bool) error {
	started, err := start(asked, fast)
	if err != nil {
		return err
	}
	if err := asked.ServeUntilToldToStop(started); err != nil {
		return err
	}
	return started.raft.Shutdown().Error()
}
