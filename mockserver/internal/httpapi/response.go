package httpapi

import "github.com/gateway-go/gateway/mockserver/internal/respond"

// stamp is a time on the wire, or null.
type stamp = respond.Stamp

// nullable returns nil for "": null on the wire.
func nullable(s *string) *string { return respond.Nullable(s) }

// envelope is the body of a success.
type envelope struct {
	Success   bool   `json:"success"`
	RequestID string `json:"requestId"`
	Data      any    `json:"data"`
}

// cursorList is the data of a list by cursor, in the document dialect.
type cursorList struct {
	Data  any     `json:"data"`
	Total int     `json:"total"`
	Next  *string `json:"next_cursor"`
	Prev  *string `json:"prev_cursor"`
}

// liveCursorList is the same in the live dialect: the whole body.
type liveCursorList struct {
	Success   bool   `json:"success"`
	RequestID string `json:"requestId"`
	cursorList
}

type listMetadata struct {
	Page  int `json:"page"`
	Limit int `json:"limit"`
	Total int `json:"total"`
}

// numberedList is the whole body of a list by page number.
type numberedList struct {
	Success   bool         `json:"success"`
	RequestID string       `json:"requestId"`
	Metadata  listMetadata `json:"metadata"`
	Data      any          `json:"data"`
}

// writeData writes a stored response unchanged, and encodes any other data.
func (rq *request) writeData(data any) {
	switch d := data.(type) {
	case storedResponse:
		rq.writeStored(d)
	default:
		rq.write(rq.status, respond.JSON, rq.body(data))
	}
}

// body puts data into the envelope, unless it is the whole body.
func (rq *request) body(data any) any {
	switch data.(type) {
	case liveCursorList, numberedList:
		return data
	}
	if rq.route.legacy {
		return data
	}
	return envelope{true, rq.id, data}
}

func (rq *request) write(status int, contentType string, body any) {
	rq.w.Header().Set("X-Request-Id", rq.id)
	respond.Write(rq.w, status, contentType, body)
}
