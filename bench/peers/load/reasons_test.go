package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReasonsOfErrorsAreFewAndSayWhatHappened(t *testing.T) {
	strange := errors.New("from 127.0.0.1:45678")
	for _, expected := range []struct {
		system system
		err    error
		reason string
	}{
		{etcd{}, status.Error(codes.Unavailable, "at 127.0.0.1:45678"), "Unavailable"},
		{etcd{}, rpctypes.ErrLeaderChanged, "Unavailable"},
		{etcd{}, context.DeadlineExceeded, "DeadlineExceeded"},
		{etcd{}, errEtcdKeyMissing, "key missing"},
		{etcd{}, strange, "Unknown"},
		{zookeeper{}, zk.ErrConnectionClosed, "connection closed"},
		{zookeeper{}, context.DeadlineExceeded, "timeout"},
		{zookeeper{}, strange, otherReason},
		{natsSystem{}, nats.ErrNoResponders, "no responders"},
		{natsSystem{}, nats.ErrTimeout, "timeout"},
		{natsSystem{}, nats.ErrConnectionClosed, "connection closed"},
		{natsSystem{}, &jetstream.APIError{ErrorCode: 10008}, "JetStream error 10008"},
		{natsSystem{}, strange, otherReason},
	} {
		if got := expected.system.reason(fmt.Errorf("wrapped: %w", expected.err)); got != expected.reason {
			t.Errorf("%T, %v: got %q, want %q", expected.system, expected.err, got, expected.reason)
		}
	}
}
