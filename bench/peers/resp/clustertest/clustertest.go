// Package clustertest is the test that every peer passes: three processes, of which the leader is stopped for a
// while, and the next one killed. A peer's test program is the peer itself when its environment says so.
package clustertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	beReplica = "QUORUMWIRE_BENCH_BE_REPLICA"
	replicas  = 3
	pipelined = 64
	// What an election may take on a busy machine.
	waitMax = 90 * time.Second
	askMax  = 10 * time.Second
	pause   = 20 * time.Millisecond
)

// Main runs the tests, or the peer's own main function in the processes that the tests start.
func Main(m *testing.M, replica func()) {
	if os.Getenv(beReplica) != "" {
		replica()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type process struct {
	command *exec.Cmd
	clients string
	// Killed or stopped: it is not asked.
	absent bool
}

type cluster struct {
	t         *testing.T
	processes []process
}

// Run starts a cluster with these flags beside the common ones; `data` makes more for each replica.
func Run(t *testing.T, data func(replica int) []string) {
	c := start(t, data)
	leader := c.leader()
	c.writesAndReads(leader)
	c.garbageClosesOnlyItsConnection(leader)
	c.followersServeOrSayWhoLeads(leader)
	leader = c.whoWasStoppedDoesNotAnswerWithWhatWas(leader)
	c.kill(leader)
	next := c.leader()
	c.mustAnswer(next, "$2\r\nv7\r\n", "GET", "k7")
	c.writesAndReads(next)
}

func start(t *testing.T, data func(replica int) []string) *cluster {
	addresses := freeAddresses(t, 2*replicas)
	c := &cluster{t: t}
	for n := 0; n < replicas; n++ {
		command := exec.Command(os.Args[0], append([]string{
			"-replica", strconv.Itoa(n),
			"-peers", strings.Join(addresses[:replicas], ","),
			"-clients", strings.Join(addresses[replicas:], ","),
		}, data(n)...)...)
		command.Env = append(os.Environ(), beReplica+"=1")
		log, err := os.Create(fmt.Sprintf("%s/replica%d.log", t.TempDir(), n))
		if err != nil {
			t.Fatal(err)
		}
		command.Stdout, command.Stderr = log, log
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			command.Process.Kill()
			command.Wait()
			if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
				t.Logf("%s: %s", log.Name(), text)
			}
			log.Close()
		})
		c.processes = append(c.processes, process{command: command, clients: addresses[replicas+n]})
	}
	return c
}

// freeAddresses are of ports that nobody listens on; another program could take one before they are used.
func freeAddresses(t *testing.T, count int) []string {
	var addresses []string
	for n := 0; n < count; n++ {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// leader waits until one says that it leads, all others name it, and it takes a write.
func (c *cluster) leader() int {
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); time.Sleep(pause) {
		leading, agreed := -1, true
		for n, each := range c.processes {
			if each.absent {
				continue
			}
			answer, err := c.ask(n, "INFO", "replication")
			if err == nil && strings.Contains(answer, "role:leader\r\n") {
				leading = n
			}
		}
		if leading < 0 {
			continue
		}
		for n, each := range c.processes {
			if !each.absent {
				answer, _ := c.ask(n, "INFO")
				agreed = agreed && strings.Contains(answer, "leader:"+c.processes[leading].clients+"\r\n")
			}
		}
		if !agreed {
			continue
		}
		if answer, err := c.ask(leading, "SET", "first", "v"); err == nil && answer == "+OK\r\n" {
			return leading
		}
	}
	c.t.Fatalf("no leader within %v", waitMax)
	return 0
}

// writesAndReads sends many requests at once; a read behind a write in the same connection sees it.
func (c *cluster) writesAndReads(leader int) {
	c.t.Helper()
	connection := c.connect(leader)
	defer connection.Close()
	var requests, expected strings.Builder
	for n := 0; n < pipelined; n++ {
		key, value := fmt.Sprintf("k%d", n), fmt.Sprintf("v%d", n)
		requests.WriteString(request("SET", key, value) + request("GET", key))
		fmt.Fprintf(&expected, "+OK\r\n$%d\r\n%s\r\n", len(value), value)
	}
	go io.WriteString(connection, requests.String())
	got := make([]byte, expected.Len())
	if read, err := io.ReadFull(connection, got); err != nil || string(got) != expected.String() {
		c.t.Fatalf("got %q, %v", got[:read], err)
	}
	c.mustAnswer(leader, "$-1\r\n", "GET", "none")
}

func (c *cluster) garbageClosesOnlyItsConnection(leader int) {
	c.t.Helper()
	connection := c.connect(leader)
	defer connection.Close()
	go io.WriteString(connection, "GET / HTTP/1.1\r\n\r\n")
	answer, err := io.ReadAll(connection)
	// What it had not read when it closed makes the kernel send a reset.
	if errors.Is(err, os.ErrDeadlineExceeded) || len(answer) > 0 && !strings.HasPrefix(string(answer), "-ERR Protocol error") {
		c.t.Fatalf("got %q, %v", answer, err)
	}
	c.mustAnswer(leader, "+PONG\r\n", "PING")
}

// followersServeOrSayWhoLeads: they answer as the leader would, or with where it is.
func (c *cluster) followersServeOrSayWhoLeads(leader int) {
	c.t.Helper()
	redirected := "-NOTLEADER " + c.processes[leader].clients + "\r\n"
	for n := range c.processes {
		if n == leader {
			continue
		}
		answer, err := c.ask(n, "GET", "k0")
		if err != nil || answer != redirected && answer != "$2\r\nv0\r\n" {
			c.t.Fatalf("replica %d answered %q, %v", n, answer, err)
		}
		answer, err = c.ask(n, "SET", "by follower", "v")
		if err != nil || answer != redirected && answer != "+OK\r\n" {
			c.t.Fatalf("replica %d answered %q, %v", n, answer, err)
		}
	}
}

// whoWasStoppedDoesNotAnswerWithWhatWas stops the leader, changes a value at the next one, and has the first find reads
// in its connection as soon as it goes on, when it still believes that it leads. Who leads then is returned.
func (c *cluster) whoWasStoppedDoesNotAnswerWithWhatWas(leader int) int {
	c.t.Helper()
	c.mustAnswer(leader, "+OK\r\n", "SET", "changed", "before")
	connection := c.connect(leader)
	defer connection.Close()
	c.signal(leader, syscall.SIGSTOP)
	c.processes[leader].absent = true
	next := c.leader()
	c.mustAnswer(next, "+OK\r\n", "SET", "changed", "behind")
	for n := 0; n < pipelined; n++ {
		if _, err := io.WriteString(connection, request("GET", "changed")); err != nil {
			c.t.Fatal(err)
		}
	}
	c.signal(leader, syscall.SIGCONT)
	reader := bufio.NewReader(connection)
	for n := 0; n < pipelined; n++ {
		answer, err := answerFrom(reader)
		if err != nil || answer != "$6\r\nbehind\r\n" && answer[0] != '-' {
			c.t.Fatalf("who had been stopped answered %q, %v", answer, err)
		}
	}
	c.processes[leader].absent = false
	return c.leader()
}

func (c *cluster) signal(n int, number syscall.Signal) {
	if err := c.processes[n].command.Process.Signal(number); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) kill(n int) {
	c.processes[n].command.Process.Kill()
	c.processes[n].command.Wait()
	c.processes[n].absent = true
}

func (c *cluster) connect(n int) net.Conn {
	connection, err := net.DialTimeout("tcp", c.processes[n].clients, askMax)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := connection.SetDeadline(time.Now().Add(waitMax)); err != nil {
		c.t.Fatal(err)
	}
	return connection
}

// mustAnswer asks until it is answered, but for errors that say to ask again.
func (c *cluster) mustAnswer(n int, expected string, words ...string) {
	c.t.Helper()
	answer, err := "", error(nil)
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); time.Sleep(pause) {
		answer, err = c.ask(n, words...)
		if err == nil && !strings.HasPrefix(answer, "-UNAVAILABLE") {
			break
		}
	}
	if err != nil || answer != expected {
		c.t.Fatalf("%q: got %q, %v, want %q", words, answer, err, expected)
	}
}

// ask is one request of a connection of its own: its whole answer.
func (c *cluster) ask(n int, words ...string) (string, error) {
	connection, err := net.DialTimeout("tcp", c.processes[n].clients, askMax)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(askMax)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, request(words...)); err != nil {
		return "", err
	}
	return answerFrom(bufio.NewReader(connection))
}

func answerFrom(reader *bufio.Reader) (string, error) {
	line, err := reader.ReadString('\n')
	if err != nil || line[0] != '$' || line == "$-1\r\n" {
		return line, err
	}
	length, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil {
		return line, err
	}
	value := make([]byte, length+2)
	_, err = io.ReadFull(reader, value)
	return line + string(value), err
}

func request(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}
