// NATS JetStream, over github.com/nats-io/nats.go: a bucket of its key-value store, which is a stream in memory.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const natsBucket = "bench"

type natsSystem struct {
	survive bool
}

type natsConnection struct {
	conn   *nats.Conn
	stream jetstream.JetStream
}

func (s natsSystem) connect(ctx, _ context.Context, address string) (connection, error) {
	timeout := connectTimeout
	if s.survive {
		timeout = tryTimeout
	}
	options := []nats.Option{nats.Timeout(timeout), nats.IgnoreDiscoveredServers()}
	if s.survive {
		// This program goes to the next address itself.
		options = append(options, nats.NoReconnect())
	}
	conn, err := nats.Connect("nats://"+address, options...)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		conn.Close()
		return nil, err
	}
	stream, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return natsConnection{conn, stream}, nil
}

// prepare makes the bucket. One that is there with other settings is refused.
func (natsSystem) prepare(ctx context.Context, c connection, asked options) error {
	_, err := c.(natsConnection).stream.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket:   natsBucket,
		Replicas: asked.replicas,
		Storage:  jetstream.MemoryStorage,
	})
	return err
}

func (natsSystem) reason(err error) string {
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return "timeout"
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return "no responders"
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return "connection closed"
	case errors.Is(err, nats.ErrNoServers):
		return cannotConnect
	case errors.As(err, &refused):
		return fmt.Sprintf("JetStream error %d", refused.ErrorCode)
	}
	return otherReason
}

// write is done when the stream's leader says that a majority has it. What was not answered is not published again
// here: whether it is tried again is for the caller to say.
func (c natsConnection) write(ctx context.Context, key int, value []byte) error {
	_, err := c.stream.Publish(ctx, natsSubject(key), value, jetstream.WithRetryAttempts(0))
	return err
}

// read is not served. A bucket's reads are answered by any replica, or by the leader without asking the others:
// neither is linearizable.
func (natsConnection) read(context.Context, int) error {
	return errors.New("NATS has no linearizable read")
}

func (c natsConnection) close() {
	c.conn.Close()
}

// natsSubject is what a bucket's client publishes at for a key of 16 bytes.
func natsSubject(key int) string {
	return fmt.Sprintf("$KV.%s.bench-%010d", natsBucket, key)
}
