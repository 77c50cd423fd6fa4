// etcd, over its own client.

package main

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type etcd struct{}

type etcdConnection struct {
	client *clientv3.Client
}

var errEtcdKeyMissing = errors.New("key missing")

func (etcd) connect(ctx, life context.Context, address string) (connection, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: connectTimeout, Context: life})
	if err != nil {
		return nil, err
	}
	// The client connects when it is first asked for something.
	if _, err := client.Status(ctx, address); err != nil {
		client.Close()
		return nil, err
	}
	return etcdConnection{client}, nil
}

// prepare stores what is read; writes need nothing.
func (etcd) prepare(ctx context.Context, c connection, asked options) error {
	if asked.writePercent == 100 {
		return nil
	}
	return forEachKey(asked, func(key int, value []byte) error { return c.write(ctx, key, value) })
}

// reason is the code and not the text: there are few of them.
func (etcd) reason(err error) string {
	if errors.Is(err, errEtcdKeyMissing) {
		return errEtcdKeyMissing.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded.String()
	}
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		return said.Code().String()
	}
	return status.Code(err).String()
}

func (c etcdConnection) write(ctx context.Context, key int, value []byte) error {
	_, err := c.client.Put(ctx, etcdKey(key), string(value))
	return err
}

// read asks as the client does by default: linearizable.
func (c etcdConnection) read(ctx context.Context, key int) error {
	found, err := c.client.Get(ctx, etcdKey(key))
	if err == nil && found.Count == 0 {
		err = errEtcdKeyMissing
	}
	return err
}

func (c etcdConnection) close() {
	c.client.Close()
}

func etcdKey(key int) string {
	return fmt.Sprintf("bench-%010d", key)
}
