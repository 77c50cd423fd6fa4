package main

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"quorumwire/bench/peers/resp"
)

const (
	// As in the library's examples.
	transportPool    = 3
	transportTimeout = 10 * time.Second
	// How long a request may wait to be taken by the library. Once it is, its end is certain: the library answers
	// all of a leader that hears no majority within its lease.
	takeTimeout = 5 * time.Second

	fastTimeout = 150 * time.Millisecond
	fastLease   = 100 * time.Millisecond

	// The log is in memory, and nothing but a snapshot makes it shorter. At its own two minutes the library would
	// keep millions of entries under load. A replica that was stopped for a moment is to find what it missed.
	snapshotInterval = 5 * time.Second
	trailingLogs     = 1 << 17
)

// replica is a resp.Replica.
type replica struct {
	raft   *raft.Raft
	values *resp.Values
	// Where clients find each member.
	clients map[raft.ServerID]string
	// The last term in which this replica led and had everything of the terms before.
	caughtUpTerm atomic.Uint64
}

func start(asked resp.Options, fast bool) (*replica, error) {
	settings := settings(asked.Replica, fast)
	advertised, err := net.ResolveTCPAddr("tcp", asked.Peers[asked.Replica])
	if err != nil {
		return nil, err
	}
	transport, err := raft.NewTCPTransportWithLogger(
		asked.Peers[asked.Replica], advertised, transportPool, transportTimeout, settings.Logger)
	if err != nil {
		return nil, err
	}
	started := &replica{values: resp.NewValues(), clients: map[raft.ServerID]string{}}
	var members raft.Configuration
	for n, address := range asked.Peers {
		members.Servers = append(members.Servers, raft.Server{ID: name(n), Address: raft.ServerAddress(address)})
		started.clients[name(n)] = asked.Clients[n]
	}
	store := raft.NewInmemStore()
	started.raft, err = raft.NewRaft(
		settings, &machine{started.values}, store, store, raft.NewInmemSnapshotStore(), transport)
	if err != nil {
		return nil, err
	}
	// All members begin with the same configuration, as the library allows.
	return started, started.raft.BootstrapCluster(members).Error()
}

func settings(member int, fast bool) *raft.Config {
	settings := raft.DefaultConfig()
	settings.LocalID = name(member)
	settings.BatchApplyCh = true
	settings.SnapshotInterval = snapshotInterval
	settings.TrailingLogs = trailingLogs
	settings.Logger = hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.Warn, Output: os.Stderr})
	if fast {
		settings.HeartbeatTimeout = fastTimeout
		settings.ElectionTimeout = fastTimeout
		settings.LeaderLeaseTimeout = fastLease
	}
	return settings
}

func name(member int) raft.ServerID {
	return raft.ServerID(fmt.Sprintf("replica%d", member))
}

// Leads says whether this replica believes that it leads, and who does.
func (r *replica) Leads() (bool, string) {
	_, leader := r.raft.LeaderWithID()
	return r.raft.State() == raft.Leader, r.clients[leader]
}

func (r *replica) notLeader() resp.Pending {
	_, leader := r.Leads()
	return resp.NotLeader(leader)
}

func (r *replica) Set(key, value []byte) resp.Pending {
	if r.raft.State() != raft.Leader {
		return r.notLeader()
	}
	return write{r.raft.Apply(resp.Command(key, value), takeTimeout)}
}

type write struct {
	future raft.ApplyFuture
}

func (w write) Answer(to []byte) []byte {
	if err := w.future.Error(); err != nil {
		return resp.Unavailable(err).Answer(to)
	}
	if refused, failed := w.future.Response().(error); failed {
		return resp.Error("ERR", refused).Answer(to)
	}
	return resp.OK.Answer(to)
}

// Get is linearizable and needs no log entry. What this leader has answered it has applied; what leaders before it
// have answered it has applied once a barrier of its own term is through; and that nobody has led since then, a
// majority says, which is asked after the request has come (VerifyLeader, no lease).
func (r *replica) Get(key []byte) resp.Pending {
	if r.raft.State() != raft.Leader {
		return r.notLeader()
	}
	term := r.raft.CurrentTerm()
	pending := read{replica: r, key: string(key), term: term}
	if r.caughtUpTerm.Load() != term {
		pending.barrier = r.raft.Barrier(takeTimeout)
	}
	pending.verified = r.raft.VerifyLeader()
	return pending
}

type read struct {
	replica  *replica
	key      string
	term     uint64
	barrier  raft.Future // nil if there was one in this term
	verified raft.Future
}

func (r read) Answer(to []byte) []byte {
	if r.barrier != nil {
		if err := r.barrier.Error(); err != nil {
			return resp.Unavailable(err).Answer(to)
		}
	}
	if err := r.verified.Error(); err != nil {
		return resp.Unavailable(err).Answer(to)
	}
	if r.replica.raft.CurrentTerm() != r.term {
		return resp.Unavailable("another term has begun").Answer(to)
	}
	if r.barrier != nil {
		r.replica.caughtUpTerm.Store(r.term)
	}
	value, found := r.replica.values.Get([]byte(r.key))
	return resp.AppendValue(to, value, found)
}
