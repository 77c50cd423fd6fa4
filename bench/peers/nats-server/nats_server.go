// Package natsserver names the NATS server that is measured: go.mod and go.sum pin it, and this import keeps it in
// them. The server is built by `go build -o OUT github.com/nats-io/nats-server/v2` in this folder (nats.py does).
package natsserver

import _ "github.com/nats-io/nats-server/v2/server" // what the server's own main calls
