package main

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"quorumwire/bench/peers/resp"
	"quorumwire/bench/peers/resp/clustertest"
)

func TestMain(m *testing.M) {
	clustertest.Main(m, main)
}

func TestWritesGoOnWhenTheLeaderIsKilled(t *testing.T) {
	clustertest.Run(t, func(int) []string { return nil })
}

func TestWritesGoOnWhenTheLeaderIsKilledWithFastTimeouts(t *testing.T) {
	clustertest.Run(t, func(int) []string { return []string{"-fast"} })
}

func TestTimeoutsAreTheLibrarysUnlessFast(t *testing.T) {
	for _, fast := range []bool{false, true} {
		given := settings(0, fast)
		if err := raft.ValidateConfig(given); err != nil {
			t.Error(err)
		}
		isDefault := given.HeartbeatTimeout == time.Second && given.ElectionTimeout == time.Second && given.LeaderLeaseTimeout == time.Second/2
		if isDefault == fast {
			t.Errorf("fast %v: %v, %v, %v", fast, given.HeartbeatTimeout, given.ElectionTimeout, given.LeaderLeaseTimeout)
		}
	}
}

func TestABatchIsAnsweredEntryByEntry(t *testing.T) {
	values := resp.NewValues()
	answers := (&machine{values}).ApplyBatch([]*raft.Log{
		{Type: raft.LogCommand, Data: resp.Command([]byte("k"), []byte("v"))},
		{Type: raft.LogConfiguration},
		{Type: raft.LogCommand, Data: []byte{0}},
	})
	if len(answers) != 3 || answers[0] != nil || answers[1] != nil || answers[2] != resp.ErrCommand {
		t.Errorf("got %v", answers)
	}
	if value, _ := values.Get([]byte("k")); string(value) != "v" {
		t.Errorf("got %q", value)
	}
}
