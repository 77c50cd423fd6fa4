// Command dragonboat is one replica of a key-value server over github.com/lni/dragonboat, asked in Redis' protocol:
// what a Go program gets that uses this library with its quicker log. State is in memory, the log in files.
package main

import (
	"errors"
	"flag"

	"quorumwire/bench/peers/resp"
)

func main() {
	flags := flag.NewFlagSet("dragonboat", flag.ContinueOnError)
	folder := flags.String("dir", "", "an empty folder for the log and snapshots")
	check := func() error {
		if *folder == "" {
			return errors.New("dir: nothing is given; allowed: a folder")
		}
		return nil
	}
	resp.Main(flags, check, func(asked resp.Options) error { return run(asked, *folder) })
}

func run(asked resp.Options, folder string) error {
	started, err := start(asked, folder)
	if err != nil {
		return err
	}
	defer started.host.Close()
	return asked.ServeUntilToldToStop(started)
}
