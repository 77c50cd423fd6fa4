package main

import (
	"time"

	"github.com/lni/dragonboat/v4"
	"github.com/lni/dragonboat/v4/client"
	"github.com/lni/dragonboat/v4/config"
	"github.com/lni/dragonboat/v4/logger"
	"github.com/lni/dragonboat/v4/plugin/tan"

	"quorumwire/bench/peers/resp"
)

const (
	shard = 1
	// The library's clock, and what it counts in that. A leader is missed after twice the election's ticks at most.
	tickMs         = 10
	electionTicks  = 20
	heartbeatTicks = 2
	// Else the log grows for as long as there is load, and its folder is in memory.
	snapshotEntries = 1_000_000
	// What is kept behind a snapshot for a replica that was stopped for a moment.
	compactionOverhead = 200_000
	// The library answers every request after that.
	requestTimeout = 5 * time.Second
)

// replica is a resp.Replica. The library sends writes of a follower's clients on to the leader, and a follower reads
// once the leader has told it how far it must be; so every replica serves.
type replica struct {
	host    *dragonboat.NodeHost
	session *client.Session
	id      uint64
	clients []string
}

func start(asked resp.Options, folder string) (*replica, error) {
	for _, name := range []string{"raft", "rsm", "transport", "grpc", "logdb", "dragonboat", "config", "tan", "pebblekv"} {
		logger.GetLogger(name).SetLevel(logger.WARNING)
	}
	host, err := dragonboat.NewNodeHost(config.NodeHostConfig{
		NodeHostDir:    folder,
		RTTMillisecond: tickMs,
		RaftAddress:    asked.Peers[asked.Replica],
		Expert:         config.ExpertConfig{LogDBFactory: tan.Factory},
	})
	if err != nil {
		return nil, err
	}
	members := map[uint64]dragonboat.Target{}
	for n, address := range asked.Peers {
		members[member(n)] = address
	}
	err = host.StartReplica(members, false, newMachine, config.Config{
		ReplicaID:          member(asked.Replica),
		ShardID:            shard,
		CheckQuorum:        true,
		PreVote:            true,
		ElectionRTT:        electionTicks,
		HeartbeatRTT:       heartbeatTicks,
		SnapshotEntries:    snapshotEntries,
		CompactionOverhead: compactionOverhead,
	})
	if err != nil {
		host.Close()
		return nil, err
	}
	return &replica{host, host.GetNoOPSession(shard), member(asked.Replica), asked.Clients}, nil
}

// member is the library's number of a replica; it does not allow 0.
func member(n int) uint64 {
	return uint64(n) + 1
}

// Leads says whether this replica believes that it leads, and who does.
func (r *replica) Leads() (bool, string) {
	leader, _, known, err := r.host.GetLeaderID(shard)
	if err != nil || !known || leader < 1 || leader > uint64(len(r.clients)) {
		return false, ""
	}
	return leader == r.id, r.clients[leader-1]
}

func (r *replica) Set(key, value []byte) resp.Pending {
	state, err := r.host.Propose(r.session, resp.Command(key, value), requestTimeout)
	if err != nil {
		return resp.Unavailable(err)
	}
	return write{state}
}

type write struct {
	state *dragonboat.RequestState
}

func (w write) Answer(to []byte) []byte {
	defer w.state.Release()
	result := <-w.state.AppliedC()
	if !result.Completed() {
		return resp.Unavailable(reason(result)).Answer(to)
	}
	if result.GetResult().Value != applied {
		return resp.Error("ERR", string(result.GetResult().Data)).Answer(to)
	}
	return resp.OK.Answer(to)
}

// Get is linearizable: a read index, confirmed by a majority after the request has come.
func (r *replica) Get(key []byte) resp.Pending {
	state, err := r.host.ReadIndex(shard, requestTimeout)
	if err != nil {
		return resp.Unavailable(err)
	}
	return read{r.host, state, string(key)}
}

type read struct {
	host  *dragonboat.NodeHost
	state *dragonboat.RequestState
	key   string
}

func (r read) Answer(to []byte) []byte {
	defer r.state.Release()
	if result := <-r.state.AppliedC(); !result.Completed() {
		return resp.Unavailable(reason(result)).Answer(to)
	}
	answered, err := r.host.ReadLocalNode(r.state, r.key)
	if err != nil {
		return resp.Unavailable(err).Answer(to)
	}
	value, found := answered.([]byte)
	return resp.AppendValue(to, value, found)
}

func reason(result dragonboat.RequestResult) string {
	switch {
	case result.Timeout():
		return "not within the time limit"
	case result.Dropped():
		return "no leader"
	case result.Terminated():
		return "this replica stops"
	default:
		return "not done"
	}
}
