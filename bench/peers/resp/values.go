package resp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// KeysMax bounds what all clients together can make a replica keep.
const KeysMax = 1 << 20

// ErrFull is the answer to a SET of one key too many, the same on every replica.
var ErrFull = errors.New("too many keys")

// ErrCommand is the answer to bytes in the log that are no SET.
var ErrCommand = errors.New("no such command in the log")

// Values is the state that a peer replicates. All methods may be called at once.
type Values struct {
	keysMax int

	mutex sync.RWMutex
	byKey map[string][]byte
}

// NewValues is empty.
func NewValues() *Values {
	return &Values{keysMax: KeysMax, byKey: map[string][]byte{}}
}

// Command is a SET as it stands in a replicated log; it copies both.
func Command(key, value []byte) []byte {
	command := make([]byte, 2, 2+len(key)+len(value))
	binary.BigEndian.PutUint16(command, uint16(len(key)))
	return append(append(command, key...), value...)
}

// Apply sets what a Command says. The values keep a part of it.
func (v *Values) Apply(command []byte) error {
	if len(command) < 2 || len(command)-2 < int(binary.BigEndian.Uint16(command)) {
		return ErrCommand
	}
	end := 2 + int(binary.BigEndian.Uint16(command))
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, known := v.byKey[string(command[2:end])]; !known && len(v.byKey) >= v.keysMax {
		return ErrFull
	}
	v.byKey[string(command[2:end])] = command[end:]
	return nil
}

// Get is the value of a key, which must not be changed.
func (v *Values) Get(key []byte) ([]byte, bool) {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	value, found := v.byKey[string(key)]
	return value, found
}

// Copy is what a snapshot is made of while the original goes on changing.
func (v *Values) Copy() *Values {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	copied := make(map[string][]byte, len(v.byKey))
	for key, value := range v.byKey {
		copied[key] = value
	}
	return &Values{keysMax: v.keysMax, byKey: copied}
}

// Save writes everything: commands behind their lengths.
func (v *Values) Save(to io.Writer) error {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	buffered := bufio.NewWriter(to)
	for key, value := range v.byKey {
		command := Command([]byte(key), value)
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(command)))
		if _, err := buffered.Write(append(length[:], command...)); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Restore replaces everything with what Save wrote.
func (v *Values) Restore(from io.Reader) error {
	restored := NewValues()
	buffered := bufio.NewReader(from)
	for {
		var length [4]byte
		if _, err := io.ReadFull(buffered, length[:]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		bytes := binary.BigEndian.Uint32(length[:])
		if bytes > 2+KeyBytesMax+ValueBytesMax {
			return fmt.Errorf("%w: %d bytes", ErrCommand, bytes)
		}
		command := make([]byte, bytes)
		if _, err := io.ReadFull(buffered, command); err != nil {
			return err
		}
		if err := restored.Apply(command); err != nil {
			return err
		}
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.byKey = restored.byKey
	return nil
}
