package main

import (
	"io"

	"github.com/lni/dragonboat/v4/statemachine"

	"quorumwire/bench/peers/resp"
)

// applied is the result of an entry that was a SET; another has an error's text.
const applied = 1

// machine is a statemachine.IStateMachine over the values.
type machine struct {
	values *resp.Values
}

func newMachine(uint64, uint64) statemachine.IStateMachine {
	return &machine{resp.NewValues()}
}

func (m *machine) Update(entry statemachine.Entry) (statemachine.Result, error) {
	// The entry's bytes are the library's, the values keep theirs.
	if err := m.values.Apply(append([]byte(nil), entry.Cmd...)); err != nil {
		return statemachine.Result{Data: []byte(err.Error())}, nil
	}
	return statemachine.Result{Value: applied}, nil
}

// Lookup takes a key, a string, and answers its value, a []byte, or nil if it has none.
func (m *machine) Lookup(key interface{}) (interface{}, error) {
	if value, found := m.values.Get([]byte(key.(string))); found {
		return value, nil
	}
	return nil, nil
}

func (m *machine) SaveSnapshot(to io.Writer, _ statemachine.ISnapshotFileCollection, _ <-chan struct{}) error {
	return m.values.Save(to)
}

func (m *machine) RecoverFromSnapshot(from io.Reader, _ []statemachine.SnapshotFile, _ <-chan struct{}) error {
	return m.values.Restore(from)
}

func (m *machine) Close() error {
	return nil
}
