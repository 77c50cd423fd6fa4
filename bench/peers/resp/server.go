package resp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of what clients can make a server keep.
const (
	// ConnectionsMax is how many are served at once; one more is closed.
	ConnectionsMax = 1024
	// PendingMax is how many requests of one connection are under way at once; more wait in the socket.
	PendingMax = 1024
	// Answers that wait to be written together.
	answerBytesMax = 1 << 16
	// A client that takes nothing for so long is gone.
	writeTimeout = 10 * time.Second
)

// Pending is a request that is under way.
type Pending interface {
	// Answer waits for its end and appends what the client is told.
	Answer(to []byte) []byte
}

// Replica is one of a group that replicates. Requests are only started by these calls, so that any number are
// under way at once; what is given is valid until the call returns.
type Replica interface {
	Set(key, value []byte) Pending
	Get(key []byte) Pending
	// Leads says whether this replica leads, and where clients find the one that does ("" if it is not known).
	Leads() (bool, string)
}

// Ready is an answer for which nothing has to be waited.
type Ready string

// Answer is itself.
func (r Ready) Answer(to []byte) []byte {
	return append(to, r...)
}

// OK is the answer to a SET that is done.
const OK = Ready("+OK\r\n")

// Error is an answer of the kind that begins with a word in capitals.
func Error(word string, reason any) Ready {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, fmt.Sprint(reason))
	return Ready("-" + word + " " + text + "\r\n")
}

// Unavailable is the answer to a request of which nobody knows whether it was done, or which was not done.
func Unavailable(reason any) Ready {
	return Error("UNAVAILABLE", reason)
}

// NotLeader is the answer of a replica that does not lead, and says who does.
func NotLeader(leader string) Ready {
	if leader == "" {
		return Unavailable("no leader is known")
	}
	return Error("NOTLEADER", leader)
}

// AppendValue appends what a GET found.
func AppendValue(to, value []byte, found bool) []byte {
	if !found {
		return append(to, "$-1\r\n"...)
	}
	to = append(to, '$')
	to = strconv.AppendInt(to, int64(len(value)), 10)
	to = append(to, "\r\n"...)
	to = append(to, value...)
	return append(to, "\r\n"...)
}

// Serve answers clients until the listener is closed.
func Serve(listener net.Listener, replica Replica) error {
	slots := make(chan struct{}, ConnectionsMax)
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				serve(connection, replica)
			}()
		default:
			connection.Close()
		}
	}
}

// serve starts requests as they come and answers them in that order. It ends when the client is gone or
// is not understood.
func serve(connection net.Conn, replica Replica) {
	defer connection.Close()
	pending := make(chan Pending, PendingMax)
	go func() {
		defer close(pending)
		take(newReader(connection), replica, pending)
	}()
	out := &outbox{connection: connection, wake: make(chan struct{}, 1)}
	defer close(out.wake)
	go out.flushWhenWoken()
	var answer []byte
	for request := range pending {
		answer = request.Answer(answer[:0])
		if err := out.add(answer, len(pending) == 0); err != nil {
			break
		}
	}
	// After this the other side of the channel ends, too, and is not to be left waiting.
	connection.Close()
	for range pending {
	}
}

// take starts every request that comes.
func take(requests *reader, replica Replica, pending chan<- Pending) {
	for {
		words, err := requests.next()
		if err == nil {
			pending <- begin(words, replica)
			continue
		}
		if errors.Is(err, errProtocol) {
			pending <- Error("ERR", err)
		}
		return
	}
}

func begin(words [][]byte, replica Replica) Pending {
	name, arguments := words[0], words[1:]
	switch {
	case is(name, "SET") && len(arguments) == 2:
		if refused := tooLong(arguments[0], arguments[1]); refused != "" {
			return refused
		}
		return replica.Set(arguments[0], arguments[1])
	case is(name, "GET") && len(arguments) == 1:
		if refused := tooLong(arguments[0], nil); refused != "" {
			return refused
		}
		return replica.Get(arguments[0])
	case is(name, "PING") && len(arguments) == 0:
		return Ready("+PONG\r\n")
	case is(name, "INFO") && len(arguments) <= 1:
		return Ready(AppendValue(nil, []byte(info(replica)), true))
	default:
		return Error("ERR", fmt.Sprintf("%q with %d arguments is not supported", name, len(arguments)))
	}
}

func is(name []byte, wanted string) bool {
	return len(name) == len(wanted) && bytes.EqualFold(name, []byte(wanted))
}

func tooLong(key, value []byte) Ready {
	if len(key) > KeyBytesMax || len(value) > ValueBytesMax {
		return Error("ERR", fmt.Sprintf("a key may have %d bytes and a value %d", KeyBytesMax, ValueBytesMax))
	}
	return ""
}

// info answers in the form of Redis' section of that name, with Raft's words.
func info(replica Replica) string {
	leads, leader := replica.Leads()
	role := "follower"
	if leads {
		role = "leader"
	}
	return "# Replication\r\nrole:" + role + "\r\nleader:" + leader + "\r\n"
}

// outbox writes answers. The one after which nothing is left to answer is written at once; others are written by
// another goroutine, so that they neither wait for a slow request behind them nor cost a system call each.
type outbox struct {
	connection net.Conn
	wake       chan struct{}

	mutex  sync.Mutex
	bytes  []byte
	failed error
}

func (o *outbox) add(answer []byte, last bool) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.bytes = append(o.bytes, answer...)
	if last || len(o.bytes) >= answerBytesMax {
		o.flush()
	} else {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	return o.failed
}

func (o *outbox) flushWhenWoken() {
	for range o.wake {
		o.mutex.Lock()
		o.flush()
		o.mutex.Unlock()
	}
}

// flush must be called with the mutex held.
func (o *outbox) flush() {
	if len(o.bytes) == 0 || o.failed != nil {
		return
	}
	if o.failed = o.connection.SetWriteDeadline(time.Now().Add(writeTimeout)); o.failed == nil {
		_, o.failed = o.connection.Write(o.bytes)
	}
	o.bytes = o.bytes[:0]
}
