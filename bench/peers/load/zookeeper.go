// ZooKeeper, over github.com/go-zookeeper/zk: one node for each key.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	zookeeperParent = "/bench"
	// A server takes a session's end for granted after this time without a word of its client.
	sessionTimeout = 10 * time.Second
)

type zookeeper struct{}

type zookeeperConnection struct {
	conn *zk.Conn
	life context.Context
	// forget keeps the end of `life` from closing what is closed.
	forget func() bool
}

// silent keeps the client's log off standard error.
type silent struct{}

func (silent) Printf(string, ...interface{}) {}

// connect waits for a session, which is agreed on by a majority.
func (zookeeper) connect(ctx, life context.Context, address string) (connection, error) {
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
	}
	conn, events, err := zk.Connect([]string{address}, sessionTimeout, zk.WithDialer(dial), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	// Requests take no context: where the run ends, the end of the connection ends them.
	made := zookeeperConnection{conn, life, context.AfterFunc(life, conn.Close)}
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return made, nil
			}
		case <-ctx.Done():
			made.close()
			return nil, ctx.Err()
		}
	}
}

// prepare makes the nodes: a write sets what is there.
func (zookeeper) prepare(_ context.Context, c connection, asked options) error {
	conn := c.(zookeeperConnection).conn
	everybody := zk.WorldACL(zk.PermAll)
	if _, err := conn.Create(zookeeperParent, nil, 0, everybody); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	_, parent, err := conn.Exists(zookeeperParent)
	if err != nil {
		return err
	}
	if int(parent.NumChildren) >= asked.keys {
		return nil
	}
	return forEachKey(asked, func(key int, value []byte) error {
		_, err := conn.Create(zookeeperPath(key), value, 0, everybody)
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
}

// What the client says of itself and of the server's refusals, as far as it can happen to the load.
var zookeeperErrors = []error{
	zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrNoNode, zk.ErrNodeExists,
}

func (zookeeper) reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	for _, known := range zookeeperErrors {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "zk: ")
		}
	}
	return otherReason
}

func (c zookeeperConnection) write(ctx context.Context, key int, value []byte) error {
	return c.within(ctx, func() error {
		_, err := c.conn.Set(zookeeperPath(key), value, -1)
		return err
	})
}

// read asks the server to catch up with the leader first. This is as near to a linearizable read as ZooKeeper comes:
// its `sync` asks no majority, so a leader that has lost its followers may answer for a moment.
func (c zookeeperConnection) read(ctx context.Context, key int) error {
	return c.within(ctx, func() error {
		if _, err := c.conn.Sync(zookeeperPath(key)); err != nil {
			return err
		}
		_, _, err := c.conn.Get(zookeeperPath(key))
		return err
	})
}

// within ends the connection, and with it the request, where the request's own time ends before the run does.
func (c zookeeperConnection) within(ctx context.Context, request func() error) error {
	if ctx == c.life {
		return request()
	}
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	err := request()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// close may take seconds where the server does not answer: nobody waits for it.
func (c zookeeperConnection) close() {
	c.forget()
	go c.conn.Close()
}

// zookeeperPath is as long as the other systems' keys.
func zookeeperPath(key int) string {
	return fmt.Sprintf("%s/%09d", zookeeperParent, key)
}
