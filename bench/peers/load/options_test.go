package main

import (
	"strings"
	"testing"
)

func TestOptionsOutOfRangeAreRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"system": "consul", "addr": "nowhere", "connections": "0", "in-flight": "4097", "seconds": "-1", "keys": "0",
		"write-percent": "101", "rate": "-1", "interval-ms": "60001", "replicas": "8", "value-bytes": "1048577",
	} {
		arguments := []string{"-system", "etcd", "-addr", "127.0.0.1:1", "-" + name, value}
		if _, err := parse(arguments); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s %s: got %v", name, value, err)
		}
	}
	for _, arguments := range []string{
		"stray", "-connections 4096 -in-flight 4096", "-seconds 3600 -interval-ms 1",
		"-addr " + strings.Repeat("a:1,", addressesMax) + "a:1",
	} {
		words := append([]string{"-system", "etcd", "-addr", "127.0.0.1:1"}, strings.Fields(arguments)...)
		if _, err := parse(words); err == nil {
			t.Errorf("%v was taken", arguments)
		}
	}
}

func TestOptionsAreTakenWithOneDashAndWithTwo(t *testing.T) {
	asked, err := parse(strings.Fields("--system etcd -addr 127.0.0.1:1,127.0.0.1:2 -connections 3 --rate 100 --cdf --interval-ms 10"))
	if err != nil || len(asked.addresses) != 2 || asked.connections != 3 || asked.inFlight != 64 || asked.rate != 100 || !asked.cdf {
		t.Errorf("got %+v, %v", asked, err)
	}
	if asked.writePercent != 100 || asked.lanes() != 3*64 || asked.interval.Milliseconds() != 10 {
		t.Errorf("got %+v", asked)
	}
}

func TestReadsOfASystemWithoutLinearizableReadsAreRefused(t *testing.T) {
	words := strings.Fields("-addr 127.0.0.1:1 -write-percent 99 -system")
	if _, err := parse(append(words, natsName)); err == nil || !strings.Contains(err.Error(), "linearizable") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{etcdName, zookeeperName} {
		if _, err := parse(append(words, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysOfAllSystemsAreEquallyLong(t *testing.T) {
	for _, key := range []int{0, keysMax - 1} {
		nats := strings.TrimPrefix(natsSubject(key), "$KV."+natsBucket+".")
		for _, name := range []string{etcdKey(key), zookeeperPath(key), nats} {
			if len(name) != 16 {
				t.Errorf("%q has %d bytes", name, len(name))
			}
		}
	}
}
