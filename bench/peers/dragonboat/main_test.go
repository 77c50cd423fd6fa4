package main

import (
	"testing"

	"github.com/lni/dragonboat/v4/statemachine"

	"quorumwire/bench/peers/resp"
	"quorumwire/bench/peers/resp/clustertest"
)

func TestMain(m *testing.M) {
	clustertest.Main(m, main)
}

func TestWritesGoOnWhenTheLeaderIsKilled(t *testing.T) {
	clustertest.Run(t, func(int) []string { return []string{"-dir", t.TempDir()} })
}

func TestEntriesAreAppliedOrRefusedAndRead(t *testing.T) {
	made := newMachine(shard, 1)
	command := resp.Command([]byte("k"), []byte("v"))
	result, err := made.Update(statemachine.Entry{Cmd: command})
	if err != nil || result.Value != applied {
		t.Errorf("got %+v, %v", result, err)
	}
	command[len(command)-1] = 'x'
	if value, err := made.Lookup("k"); err != nil || string(value.([]byte)) != "v" {
		t.Errorf("got %v, %v: the library's bytes were kept", value, err)
	}
	if value, err := made.Lookup("none"); err != nil || value != nil {
		t.Errorf("got %v, %v", value, err)
	}
	result, err = made.Update(statemachine.Entry{Cmd: []byte{0}})
	if err != nil || result.Value == applied || len(result.Data) == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}
