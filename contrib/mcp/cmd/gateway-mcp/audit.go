package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// openAudit opens the file of an audit log; "" is no log. Several processes may share it,
// since each line is appended with one write.
func openAudit(path string, stderr io.Writer) (io.Writer, func() error, error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, nil, fmt.Errorf("-audit: %w", err)
	}
	return &auditFile{file: file, stderr: stderr}, file.Close, nil
}

// auditFile says once on standard error that a line could not be written.
type auditFile struct {
	file   io.Writer
	stderr io.Writer
	once   sync.Once
}

func (a *auditFile) Write(line []byte) (int, error) {
	n, err := a.file.Write(line)
	if err != nil {
		a.once.Do(func() { _, _ = fmt.Fprintf(a.stderr, "gateway-mcp: -audit: calls are no longer logged: %v\n", err) })
	}
	return n, err
}
