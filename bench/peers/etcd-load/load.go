// Putting the load on: connections, lanes and what they measured.

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"
)

const (
	connectTimeout = 5 * time.Second
	// How long answers to requests in flight are waited for at the end.
	endTimeout = 5 * time.Second
	// Pause of a lane after a request failed.
	errorPause = 100 * time.Millisecond
)

type measurement struct {
	latencies *histogram
	elapsed   time.Duration
	clientCPU time.Duration

	mutex  sync.Mutex
	errors map[string]uint64
}

// run keeps every connection's requests in flight until the time is over.
func run(asked options) (*measurement, error) {
	clients, err := connect(asked)
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	measured := &measurement{latencies: newHistogram(), errors: map[string]uint64{}}
	value := strings.Repeat("x", asked.valueBytes)
	cpuBefore, err := cpuTime()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	end := begun.Add(asked.duration)
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(endTimeout))
	defer cancel()
	var lanes sync.WaitGroup
	for number := 0; number < asked.connections*asked.inFlight; number++ {
		client := clients[number%len(clients)]
		random := rand.New(rand.NewSource(int64(number)))
		lanes.Add(1)
		go func() {
			defer lanes.Done()
			measured.lane(ctx, client, end, value, func() int { return random.Intn(asked.keys) })
		}()
	}
	lanes.Wait()
	measured.elapsed = time.Since(begun)
	cpuAfter, err := cpuTime()
	measured.clientCPU = cpuAfter - cpuBefore
	return measured, err
}

// connect makes one client, which is one connection, for each; those made are returned on errors too.
func connect(asked options) ([]*clientv3.Client, error) {
	var clients []*clientv3.Client
	for n := 0; n < asked.connections; n++ {
		endpoint := asked.endpoints[n%len(asked.endpoints)]
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: connectTimeout})
		if err != nil {
			return clients, fmt.Errorf("connecting to %s: %w", endpoint, err)
		}
		clients = append(clients, client)
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		_, err = client.Status(ctx, endpoint)
		cancel()
		if err != nil {
			return clients, fmt.Errorf("connecting to %s: %w", endpoint, err)
		}
	}
	return clients, nil
}

// lane has one request in flight: the next is sent when it is answered.
func (m *measurement) lane(ctx context.Context, client *clientv3.Client, end time.Time, value string, nextKey func() int) {
	for sent := time.Now(); sent.Before(end); sent = time.Now() {
		_, err := client.Put(ctx, fmt.Sprintf("bench-%010d", nextKey()), value)
		if err == nil {
			m.latencies.add(time.Since(sent))
			continue
		}
		m.failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(errorPause):
		}
	}
}

func (m *measurement) failed(err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	// The code and not the text: there are few of them.
	m.errors[status.Code(err).String()]++
}

func (m *measurement) report() report {
	count := m.latencies.count()
	divisor := math.Max(float64(count), 1)
	return report{
		Operations:          count,
		Seconds:             m.elapsed.Seconds(),
		OperationsPerSecond: float64(count) / m.elapsed.Seconds(),
		LatencyUs: map[string]float64{
			"p50":  m.latencies.quantileUs(0.5),
			"p99":  m.latencies.quantileUs(0.99),
			"p999": m.latencies.quantileUs(0.999),
		},
		Errors:                m.errors,
		ClientCPUPerOperation: float64(m.clientCPU.Microseconds()) / divisor,
	}
}

// cpuTime is what this process has used so far, user and system.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
