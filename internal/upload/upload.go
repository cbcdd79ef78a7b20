// Package upload has a request body for tests: a form with a file of 200 MB. net/http reads
// such a form for a handler that asks for a value, and writes it to the disk.
package upload

import (
	"context"
	"io"
	"net/http"
	"strings"
)

const size = 200 << 20

// File is the body. It counts what is read of it.
type File struct {
	Read int64 // bytes

	head io.Reader
}

type reader struct{ *File }

func (r reader) Read(p []byte) (n int, err error) {
	f := r.File
	if n, _ = f.head.Read(p); n == 0 {
		if f.Read >= size {
			return 0, io.EOF
		}
		n = len(p)
		clear(p)
	}
	f.Read += int64(n)
	return n, nil
}

// Request returns a request with the form, for a handler.
func Request(ctx context.Context, method, target string) (*http.Request, *File, error) {
	f := &File{head: strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"id\"; filename=\"f\"\r\n\r\n")}
	r, err := http.NewRequestWithContext(ctx, method, target, reader{f})
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r, f, nil
}
