// Package resp is what the replicated peers written in Go show their clients: as much of Redis' protocol as a
// benchmark needs (SET, GET, PING and INFO), and the values behind it. It does not replicate.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits of one request.
const (
	// KeyBytesMax and ValueBytesMax bound what a SET may carry.
	KeyBytesMax   = 1 << 10
	ValueBytesMax = 1 << 16
	// More than a supported command has: one with more words is answered with an error, not with a closed connection.
	wordsMax     = 64
	wordBytesMax = ValueBytesMax
	commandBytes = ValueBytesMax + 1<<14
	// A sign, a number and the end of the line.
	lineBytesMax    = 16
	readBufferBytes = 1 << 16
)

// errProtocol is of input after which nothing that follows can be understood.
var errProtocol = errors.New("Protocol error")

// reader takes requests out of a stream: arrays of strings, no inline commands. Nothing in the stream makes it
// keep more than commandBytes.
type reader struct {
	stream *bufio.Reader
	bytes  []byte
	ends   []int
	words  [][]byte
}

func newReader(stream io.Reader) *reader {
	return &reader{stream: bufio.NewReaderSize(stream, readBufferBytes)}
}

// next is one request with at least one word. It is valid until the next call.
func (r *reader) next() ([][]byte, error) {
	count, err := r.number('*', 1, wordsMax)
	if err != nil {
		return nil, err
	}
	r.bytes, r.ends, r.words = r.bytes[:0], r.ends[:0], r.words[:0]
	for n := 0; n < count; n++ {
		if err := r.word(); err != nil {
			return nil, err
		}
	}
	begin := 0
	for _, end := range r.ends {
		r.words = append(r.words, r.bytes[begin:end:end])
		begin = end
	}
	return r.words, nil
}

// word appends one string to those taken so far.
func (r *reader) word() error {
	length, err := r.number('$', 0, wordBytesMax)
	if err != nil {
		return err
	}
	begin := len(r.bytes)
	if begin+length > commandBytes {
		return fmt.Errorf("%w: a request of more than %d bytes", errProtocol, commandBytes)
	}
	r.bytes = append(r.bytes, make([]byte, length)...)
	if _, err := io.ReadFull(r.stream, r.bytes[begin:]); err != nil {
		return err
	}
	r.ends = append(r.ends, begin+length)
	var end [2]byte
	if _, err := io.ReadFull(r.stream, end[:]); err != nil {
		return err
	}
	if end != [2]byte{'\r', '\n'} {
		return fmt.Errorf("%w: a string does not end where it should", errProtocol)
	}
	return nil
}

// number is that of a line which begins with a sign.
func (r *reader) number(sign byte, low, high int) (int, error) {
	line, err := r.stream.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > lineBytesMax {
		return 0, fmt.Errorf("%w: a line of more than %d bytes", errProtocol, lineBytesMax)
	}
	if err != nil {
		return 0, err
	}
	if len(line) < 4 || line[0] != sign || line[len(line)-2] != '\r' {
		return 0, fmt.Errorf("%w: expected '%c' and a number", errProtocol, sign)
	}
	number, err := strconv.ParseUint(string(line[1:len(line)-2]), 10, 31)
	if err != nil || int(number) < low || int(number) > high {
		return 0, fmt.Errorf("%w: behind '%c', %d to %d are allowed", errProtocol, sign, low, high)
	}
	return int(number), nil
}
