package gate

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// ErrGzip means that a body is not what its Content-Encoding says.
var ErrGzip = errors.New("the body is not in gzip format")

// AcceptEncoding is the Accept-Encoding of a response to a body in another encoding.
const AcceptEncoding = "gzip"

// Decoded returns a handler that passes requests with a gzip body on to next as if the body
// had been sent without compression. Nothing is decoded before it is read, so that the
// reader's limit is that of the decoded size.
func Decoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list := encodings(r); len(list) != 1 || list[0] != "gzip" && list[0] != "x-gzip" || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		plain := *r
		plain.Header = r.Header.Clone() // an in-memory client has the same header
		plain.Header.Del("Content-Encoding")
		plain.Header.Del("Content-Length")
		plain.Body, plain.ContentLength = &decoded{compressed: r.Body}, -1
		next.ServeHTTP(w, &plain)
	})
}

// Encoding returns the encoding of a body that can't be read, or "".
func Encoding(r *http.Request) string {
	if r.ContentLength == 0 {
		return ""
	}
	return strings.Join(encodings(r), ", ")
}

// encodings returns the Content-Encoding of a request in lower case, without values that
// leave a body as it is.
func encodings(r *http.Request) []string {
	var list []string
	for _, line := range r.Header.Values("Content-Encoding") {
		for one := range strings.SplitSeq(line, ",") {
			list = append(list, strings.ToLower(strings.TrimSpace(one)))
		}
	}
	return slices.DeleteFunc(list, func(one string) bool {
		return one == "" || one == "identity" || one == "utf-8" || one == "utf8" // clients take it for a charset
	})
}

// decoded is a body that is decoded while it is read.
type decoded struct {
	compressed io.ReadCloser
	plain      *gzip.Reader
}

func (d *decoded) Read(to []byte) (int, error) {
	if d.plain == nil {
		plain, err := gzip.NewReader(d.compressed)
		if err != nil {
			return 0, damaged(err) // io.EOF: there is no body
		}
		d.plain = plain
	}
	n, err := d.plain.Read(to)
	return n, damaged(err)
}

func (d *decoded) Close() error { return d.compressed.Close() }

// damaged marks the errors of the format.
func damaged(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrGzip, err)
	}
	return err
}
