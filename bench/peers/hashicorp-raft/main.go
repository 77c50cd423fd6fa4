// Command hashicorp-raft is one replica of a key-value server over github.com/hashicorp/raft, asked in Redis'
// protocol: what a Go program gets that uses this library as it comes. It keeps everything in memory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"quorumwire/bench/peers/resp"
)

func main() {
	flags := flag.NewFlagSet("hashicorp-raft", flag.ContinueOnError)
	fast := flags.Bool("fast", false, "timeouts for one machine room: 150 ms for heartbeats and elections, a lease of 100 ms")
	asked, err := resp.Parse(flags, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hashicorp-raft:", err)
		os.Exit(2)
	}
	if err := run(asked, *fast); err != nil {
		fmt.Fprintln(os.Stderr, "hashicorp-raft:", err)
		os.Exit(1)
	}
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
