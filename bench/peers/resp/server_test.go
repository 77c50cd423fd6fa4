package resp

import (
	"flag"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

const testTimeout = 10 * time.Second

// held answers once it is let go.
type held struct {
	letGo  chan struct{}
	answer Ready
}

func (h held) Answer(to []byte) []byte {
	<-h.letGo
	return h.answer.Answer(to)
}

// replica holds what is set until the tests let it go, and says which keys were begun.
type replica struct {
	begun chan string
	letGo map[string]chan struct{}
}

func (r replica) Set(key, _ []byte) Pending {
	r.begun <- string(key)
	return held{r.letGo[string(key)], Ready("+" + string(key) + "\r\n")}
}

func (r replica) Get(key []byte) Pending {
	return Ready(AppendValue(nil, key, string(key) != "none"))
}

func (r replica) Leads() (bool, string) {
	return true, "here:1"
}

func connect(t *testing.T, served Replica) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	go serve(server, served)
	t.Cleanup(func() { client.Close() })
	if err := client.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return client
}

func ask(t *testing.T, client net.Conn, request, expected string) {
	t.Helper()
	go io.WriteString(client, request)
	expect(t, client, expected)
}

func expect(t *testing.T, client net.Conn, expected string) {
	t.Helper()
	got := make([]byte, len(expected))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != expected {
		t.Fatalf("got %q, %v, want %q", got, err, expected)
	}
}

func set(key string) string {
	return "*3\r\n$3\r\nset\r\n$1\r\n" + key + "\r\n$1\r\nv\r\n"
}

func TestRequestsAreBegunAtOnceAndAnsweredInOrder(t *testing.T) {
	served := replica{make(chan string), map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}}
	client := connect(t, served)
	go io.WriteString(client, set("a")+set("b")+"*1\r\n$4\r\nPING\r\n")
	for _, expected := range []string{"a", "b"} {
		if got := <-served.begun; got != expected {
			t.Fatalf("%s was begun, want %s", got, expected)
		}
	}
	// Both are under way. The second is done first, and waits for its turn.
	close(served.letGo["b"])
	close(served.letGo["a"])
	expect(t, client, "+a\r\n+b\r\n+PONG\r\n")
}

func TestAnAnswerDoesNotWaitForTheNextOne(t *testing.T) {
	served := replica{make(chan string, 2), map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}}
	client := connect(t, served)
	go io.WriteString(client, set("a")+set("b"))
	<-served.begun
	<-served.begun
	close(served.letGo["a"])
	expect(t, client, "+a\r\n")
	close(served.letGo["b"])
	expect(t, client, "+b\r\n")
}

func TestAnswersOfEachCommand(t *testing.T) {
	client := connect(t, replica{})
	ask(t, client, "*2\r\n$3\r\nGET\r\n$2\r\nab\r\n", "$2\r\nab\r\n")
	ask(t, client, "*2\r\n$3\r\nGET\r\n$4\r\nnone\r\n", "$-1\r\n")
	ask(t, client, "*2\r\n$4\r\ninfo\r\n$11\r\nreplication\r\n", "$43\r\n# Replication\r\nrole:leader\r\nleader:here:1\r\n\r\n")
	for _, request := range []string{
		"*1\r\n$8\r\nFLUSHALL\r\n", "*1\r\n$3\r\nSET\r\n", "*1\r\n$6\r\nA\r\n\r\nB\r\n", "*1\r\n$0\r\n\r\n",
		"*2\r\n$3\r\nGET\r\n$1025\r\n" + strings.Repeat("k", 1025) + "\r\n",
	} {
		ask(t, client, request, "-ERR ")
		var rest [1]byte
		for rest[0] != '\n' {
			if _, err := client.Read(rest[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(t, client, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n")
}

func TestGarbageIsAnsweredWithAnErrorAndTheConnectionClosed(t *testing.T) {
	client := connect(t, replica{})
	go io.WriteString(client, "*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\n")
	answer, err := io.ReadAll(client)
	if err != nil || !strings.HasPrefix(string(answer), "+PONG\r\n-ERR Protocol error") {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	if got := Unavailable("a\r\n+OK\r\nb"); got != "-UNAVAILABLE a  +OK  b\r\n" {
		t.Errorf("got %q", got)
	}
	if NotLeader("h:1") != "-NOTLEADER h:1\r\n" || !strings.HasPrefix(string(NotLeader("")), "-UNAVAILABLE ") {
		t.Error("who leads is not said")
	}
}

func TestOptionsAreTakenOrRefused(t *testing.T) {
	parse := func(arguments ...string) (Options, error) {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		return Parse(flags, arguments)
	}
	asked, err := parse("-replica", "1", "-peers", "h:1,h:2", "-clients", "h:3,h:4")
	if err != nil || asked.Replica != 1 || asked.Peers[1] != "h:2" || asked.Clients[1] != "h:4" {
		t.Errorf("got %+v, %v", asked, err)
	}
	for _, arguments := range [][]string{
		{}, {"-peers", "h:1,h:2", "-clients", "h:3"}, {"-replica", "1", "-peers", "h:1", "-clients", "h:2"},
		{"-peers", "h", "-clients", "h:2"}, {"-replica", "-1", "-peers", "h:1", "-clients", "h:2"},
		{"-peers", "h:1", "-clients", "h:2", "stray"},
		{"-peers", strings.Repeat("h:1,", 7) + "h:1", "-clients", strings.Repeat("h:1,", 7) + "h:1"},
	} {
		if _, err := parse(arguments...); err == nil {
			t.Errorf("%v was taken", arguments)
		}
	}
}
