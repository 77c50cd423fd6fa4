package main

import (
	"io"

	"github.com/hashicorp/raft"

	"quorumwire/bench/peers/resp"
)

// machine is a raft.BatchingFSM over the values. What it answers to an entry is nil or an error.
type machine struct {
	values *resp.Values
}

func (m *machine) Apply(entry *raft.Log) interface{} {
	if entry.Type != raft.LogCommand {
		return nil
	}
	if err := m.values.Apply(entry.Data); err != nil {
		return err
	}
	return nil
}

func (m *machine) ApplyBatch(entries []*raft.Log) []interface{} {
	answers := make([]interface{}, len(entries))
	for n, entry := range entries {
		answers[n] = m.Apply(entry)
	}
	return answers
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	return snapshot{m.values.Copy()}, nil
}

func (m *machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	return m.values.Restore(from)
}

type snapshot struct {
	values *resp.Values
}

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.values.Save(sink); err != nil {
		sink.Cancel()
		return err
	}
	return sink.Close()
}

func (s snapshot) Release() {}
