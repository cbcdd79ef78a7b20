package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// portFile is the file with the gateway's address: it exists only while the
// gateway is ready. "" is none.
type portFile string

// clear removes the file of an earlier gateway, such as one that was killed.
// It does not touch a file that no gateway has written.
func (f portFile) clear() error {
	if f == "" {
		return nil
	}
	switch info, err := os.Stat(string(f)); {
	case errors.Is(err, os.ErrNotExist):
		return f.folder()
	case err != nil:
		return fmt.Errorf("-port-file: %w", err)
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

// folder checks, before the gateway starts, that the file's folder exists.
func (f portFile) folder() error {
	if _, err := os.Stat(filepath.Dir(string(f))); err != nil {
		return fmt.Errorf("-port-file: %w", err)
	}
	return nil
}

// write writes the address atomically, so that a process that waits for the file
// never reads a part of it.
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

// remove removes the file, unless another gateway has replaced it meanwhile.
func (f portFile) remove(addr string) {
	if content, err := os.ReadFile(string(f)); err == nil && strings.TrimSpace(string(content)) == addr {
		_ = os.Remove(string(f))
	}
}

// samePath reports whether two paths name the same file.
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
