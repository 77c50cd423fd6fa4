// Command dragonboat is one replica of a key-value server over github.com/lni/dragonboat, asked in Redis' protocol:
// what a Go program gets that uses this library with its quicker log. State is in memory, the log in files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"quorumwire/bench/peers/resp"
)

func main() {
	flags := flag.NewFlagSet("dragonboat", flag.ContinueOnError)
	folder := flags.String("dir", "", "an empty folder for the log and snapshots")
	asked, err := resp.Parse(flags, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil && *folder == "" {
		err = errors.New("dir: nothing is given; allowed: a folder")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dragonboat:", err)
		os.Exit(2)
	}
	if err := run(asked, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "dragonboat:", err)
		os.Exit(1)
	}
}

func run(asked resp.Options, folder string) error {
	started, err := start(asked, folder)
	if err != nil {
		return err
	}
	defer started.host.Close()
	return asked.ServeUntilToldToStop(started)
}
