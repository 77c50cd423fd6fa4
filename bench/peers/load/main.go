// Command load puts writes and reads on etcd, ZooKeeper or NATS and prints what it measured as one JSON object. It
// does what `quorumwire bench` does, over the client library of each; it starts and measures no servers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	asked, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	if err := act(asked); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// act puts the load on, or only makes what it needs, and prints the report.
func act(asked options) error {
	system := systems[asked.system](asked)
	if asked.prepareOnly {
		return prepare(context.Background(), system, asked)
	}
	measured, err := run(system, asked)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if measured.Operations == 0 {
		return fmt.Errorf("no request succeeded: %v", measured.Errors)
	}
	return nil
}
