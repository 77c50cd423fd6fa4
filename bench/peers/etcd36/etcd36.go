// Package etcd36 names the etcd that is measured: go.mod and go.sum pin it, and this import keeps it in them. The
// server is built by `go build -o OUT go.etcd.io/etcd/server/v3` in this folder (etcd.py does).
package etcd36

import _ "go.etcd.io/etcd/server/v3/etcdmain" // what the server's own main calls
