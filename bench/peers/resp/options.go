package resp

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// ReplicasMax is the largest group.
const ReplicasMax = 7

// Options say which replica of which group this is.
type Options struct {
	// Replica is the place in both lists, from 0.
	Replica int
	// Peers are the addresses at which replicas talk to each other.
	Peers []string
	// Clients are the addresses at which they serve.
	Clients []string
}

// Main is a server's whole `main`: it reads the command line, whose words `check` may refuse, and runs. Exit code 2:
// what was asked for makes no sense; 1: it failed.
func Main(flags *flag.FlagSet, check func() error, run func(Options) error) {
	asked, err := Parse(flags, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flags.Name(), err)
		os.Exit(2)
	}
	if err := run(asked); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flags.Name(), err)
		os.Exit(1)
	}
}

// Parse reads the command line; flags that only one of the programs has are in `flags` already.
func Parse(flags *flag.FlagSet, arguments []string) (Options, error) {
	var asked Options
	flags.IntVar(&asked.Replica, "replica", 0, "which of the addresses are this replica's, from 0")
	peers := flags.String("peers", "", "where replicas talk to each other, HOST:PORT,...")
	clients := flags.String("clients", "", "where they serve clients, HOST:PORT,... in the same order")
	if err := flags.Parse(arguments); err != nil {
		return asked, err
	}
	if flags.NArg() > 0 {
		return asked, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	asked.Peers, asked.Clients = strings.Split(*peers, ","), strings.Split(*clients, ",")
	if len(asked.Peers) != len(asked.Clients) || len(asked.Peers) > ReplicasMax {
		return asked, fmt.Errorf("peers, clients: %d and %d addresses; allowed: as many of both, at most %d",
			len(asked.Peers), len(asked.Clients), ReplicasMax)
	}
	for _, address := range append(asked.Peers[:len(asked.Peers):len(asked.Peers)], asked.Clients...) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return asked, fmt.Errorf("peers, clients: %w; allowed: HOST:PORT,...", err)
		}
	}
	if asked.Replica < 0 || asked.Replica >= len(asked.Peers) {
		return asked, fmt.Errorf("replica: %d is refused; allowed: 0 to %d", asked.Replica, len(asked.Peers)-1)
	}
	return asked, nil
}

// ServeUntilToldToStop serves this replica's clients until SIGTERM or SIGINT.
func (o Options) ServeUntilToldToStop(replica Replica) error {
	listener, err := net.Listen("tcp", o.Clients[o.Replica])
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-told
		listener.Close()
	}()
	return Serve(listener, replica)
}
