// A line is one connection and what becomes of it: with `-survive` it moves on to the next address when a request fails.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	// With -survive: how long one try may take, to connect or to be answered.
	tryTimeout = 250 * time.Millisecond
	// What errors of connecting are counted as.
	cannotConnect = "cannot connect"
)

var errCannotConnect = errors.New(cannotConnect)

type line struct {
	system    system
	addresses []string
	timeout   time.Duration

	mutex sync.Mutex
	conn  connection // nil: none at the moment
	at    int        // which address is asked next, or is connected
	// generation tells failures of this connection from those of earlier ones.
	generation int
}

func newLine(system system, asked options, number int) *line {
	timeout := connectTimeout
	if asked.survive {
		timeout = tryTimeout
	}
	return &line{system: system, addresses: asked.addresses, timeout: timeout, at: number % len(asked.addresses)}
}

// connected is the connection there is, or a new one. Lanes that share the line wait for it, at most `timeout`.
func (l *line) connected(life context.Context) (connection, int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.conn != nil {
		return l.conn, l.generation, nil
	}
	address := l.addresses[l.at]
	ctx, cancel := context.WithTimeout(life, l.timeout)
	defer cancel()
	// Most clients go on trying where nobody listens; a socket says so at once.
	probe, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		probe.Close()
		l.conn, err = l.system.connect(ctx, life, address)
	}
	if err != nil {
		l.conn = nil
		l.at = (l.at + 1) % len(l.addresses)
		return nil, l.generation, fmt.Errorf("%w to %s: %w", errCannotConnect, address, err)
	}
	return l.conn, l.generation, nil
}

// moveOn leaves the connection that a request failed on, if no other lane has already.
func (l *line) moveOn(generation int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.conn == nil || l.generation != generation {
		return
	}
	l.leave()
	l.at = (l.at + 1) % len(l.addresses)
}

func (l *line) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.conn != nil {
		l.leave()
	}
}

func (l *line) leave() {
	l.conn.close()
	l.conn = nil
	l.generation++
}
