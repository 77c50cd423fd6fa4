package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"
	"time"
)

func TestRequestsAreTakenOneAfterTheOther(t *testing.T) {
	r := newReader(strings.NewReader("*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n"))
	for _, expected := range []string{`["PING"]`, `["SET" "k" "\r\n\r\n"]`, `["GET" ""]`} {
		words, err := r.next()
		if got := fmt.Sprintf("%q", words); err != nil || got != expected {
			t.Errorf("got %s, %v, want %s", got, err, expected)
		}
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end", err)
	}
}

func TestWhatIsNotUnderstoodIsAProtocolError(t *testing.T) {
	for _, input := range []string{
		"PING\r\n", "\r\n", "*0\r\n", "*-1\r\n", "*65\r\n", "*1\n", "*1\r\n+4\r\nPING\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$65537\r\n", "*1\r\n$99999999999999999999\r\n", "*1\r\n$4\r\nPINGxx", "*0000000000000001\r\n",
		strings.Repeat("x", 2*readBufferBytes),
		"*2\r\n" + strings.Repeat("$65536\r\n"+strings.Repeat("x", 65536)+"\r\n", 2),
	} {
		if _, err := newReader(strings.NewReader(input)).next(); !errors.Is(err, errProtocol) {
			t.Errorf("%.30q: got %v", input, err)
		}
	}
}

// Any bytes are requests, an error or the end, and nothing is kept above the limit.
func TestAnyBytesAreTakenOrRefused(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	parts := []string{"*1\r\n", "*3\r\n", "$4\r\n", "PING\r\n", "$0\r\n\r\n", "\r\n", "*", "$", "9", "\x00"}
	taken, refused, short := 0, 0, 0
	for n := 0; n < 20000; n++ {
		var input bytes.Buffer
		for m := random.Intn(12); m >= 0; m-- {
			input.WriteString(parts[random.Intn(len(parts))])
		}
		r := newReader(&input)
		_, err := r.next()
		for ; err == nil; _, err = r.next() {
			taken++
		}
		if errors.Is(err, errProtocol) {
			refused++
		} else {
			short++
		}
		if len(r.bytes) > commandBytes {
			t.Fatalf("%d bytes are kept", len(r.bytes))
		}
	}
	if taken == 0 || refused == 0 || short == 0 {
		t.Errorf("%d taken, %d refused, %d cut short: each must happen", taken, refused, short)
	}
}
