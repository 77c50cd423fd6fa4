// What a system under load must offer, and which there are.

package main

import (
	"context"
	"maps"
	"slices"
)

const (
	etcdName      = "etcd"
	zookeeperName = "zookeeper"
	natsName      = "nats"
)

// A system knows how to connect, and what must be there before load can be put on.
type system interface {
	// connect makes one connection. What it does later ends with `life`; that it comes about is waited for until `ctx` ends.
	connect(ctx, life context.Context, address string) (connection, error)
	// prepare makes what the load needs, where it is not there already.
	prepare(ctx context.Context, c connection, asked options) error
	// reason says in a few words why a request failed. There are few different ones.
	reason(err error) string
}

// A connection takes requests of any number of goroutines. Each ends, at the latest, with its context.
type connection interface {
	write(ctx context.Context, key int, value []byte) error
	// read is linearizable, or as near to it as the system comes; the key is there.
	read(ctx context.Context, key int) error
	close()
}

var systems = map[string]func(options) system{
	etcdName:      func(options) system { return etcd{} },
	zookeeperName: func(options) system { return zookeeper{} },
	natsName:      func(asked options) system { return natsSystem{survive: asked.survive} },
}

func systemNames() []string {
	return slices.Sorted(maps.Keys(systems))
}
