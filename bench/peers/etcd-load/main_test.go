package main

import "testing"

func TestOptionsOutOfRangeAreRefusedByName(t *testing.T) {
	for _, arguments := range [][]string{{"-connections", "0"}, {"-in-flight", "4097"}, {"-seconds", "-1"}, {"-keys", "0"}, {"stray"}} {
		if _, err := parse(arguments); err == nil {
			t.Errorf("%v was taken", arguments)
		}
	}
	asked, err := parse([]string{"-endpoints", "127.0.0.1:1,127.0.0.1:2", "-connections", "3"})
	if err != nil || len(asked.endpoints) != 2 || asked.connections != 3 || asked.inFlight != 64 {
		t.Errorf("got %+v, %v", asked, err)
	}
}
