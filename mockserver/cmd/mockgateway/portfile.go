package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// portFile is the file that tells others where the gateway listens: it is there
// while the gateway is ready, and only then. "" is none.
type portFile string

// clear removes what an earlier gateway left, one that was killed perhaps. A file
// that no gateway has written is left alone.
func (f portFile) clear() error {
	if f == "" {
		return nil
	}
	switch info, err := os.Stat(string(f)); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("-port-file %s is not a regular file", f)
	}
	content, err := os.ReadFile(string(f))
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(strings.TrimSpace(string(content))); err != nil && len(content) > 0 {
		return fmt.Errorf("-port-file %s does not contain host:port; remove it or choose another file", f)
	}
	return os.Remove(string(f))
}

// write writes the address in one step, so that whoever waits for the file never
// reads half of it.
func (f portFile) write(addr string) error {
	if f == "" {
		return nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*")
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(addr + "\n")
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), string(f))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// remove removes the file, unless another gateway has written its address there
// meanwhile.
func (f portFile) remove(addr string) {
	if content, err := os.ReadFile(string(f)); err == nil && strings.TrimSpace(string(content)) == addr {
		_ = os.Remove(string(f))
	}
}

// samePath reports whether two paths mean one file.
func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
