package resp

import (
	"bytes"
	"errors"
	"testing"
)

func TestValuesAreSetSavedAndRestored(t *testing.T) {
	values := NewValues()
	for _, pair := range [][2]string{{"k", "first"}, {"k", "second"}, {"", ""}, {"other", "\x00\r\n"}} {
		if err := values.Apply(Command([]byte(pair[0]), []byte(pair[1]))); err != nil {
			t.Fatal(err)
		}
	}
	copied := values.Copy()
	if err := values.Apply(Command([]byte("k"), []byte("third"))); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := copied.Save(&saved); err != nil {
		t.Fatal(err)
	}
	cut := saved.Bytes()[:saved.Len()-1]
	if err := values.Restore(bytes.NewReader(cut)); err == nil {
		t.Error("half a snapshot was taken")
	}
	if got, _ := values.Get([]byte("k")); string(got) != "third" {
		t.Errorf("half a snapshot changed k to %q", got)
	}
	if err := values.Restore(&saved); err != nil {
		t.Fatal(err)
	}
	for key, expected := range map[string]string{"k": "second", "": "", "other": "\x00\r\n"} {
		if got, found := values.Get([]byte(key)); !found || string(got) != expected {
			t.Errorf("%q: got %q, %v", key, got, found)
		}
	}
	if _, found := values.Get([]byte("none")); found {
		t.Error("a key that was never set was found")
	}
}

func TestWhatIsNoCommandAndOneKeyTooManyAreRefused(t *testing.T) {
	values := NewValues()
	for _, command := range [][]byte{nil, {0}, {0, 1}, {255, 255, 1}} {
		if err := values.Apply(command); !errors.Is(err, ErrCommand) {
			t.Errorf("%v: got %v", command, err)
		}
	}
	values.keysMax = 2
	for _, key := range []string{"0", "1"} {
		if err := values.Apply(Command([]byte(key), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := values.Apply(Command([]byte("one more"), nil)); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := values.Apply(Command([]byte("0"), []byte("new"))); err != nil {
		t.Errorf("a key that is there: %v", err)
	}
}
