package httpapi

import "github.com/gateway-go/gateway/mockserver/internal/wire"

// envelope is the body of a success.
type envelope struct {
	Success   bool   `json:"success"`
	RequestID string `json:"requestId"`
	Data      any    `json:"data"`
}

// cursorList is the data of a list by cursor.
type cursorList struct {
	Data  any     `json:"data"`
	Total int     `json:"total"`
	Next  *string `json:"next_cursor"`
	Prev  *string `json:"prev_cursor"`
}

// liveCursorList is the same in the live dialect: the whole body.
type liveCursorList struct {
	Success   bool    `json:"success"`
	RequestID string  `json:"requestId"`
	Data      any     `json:"data"`
	Total     int     `json:"total"`
	Next      *string `json:"next_cursor"`
	Prev      *string `json:"prev_cursor"`
}

// numberedList is the data of a list by page number.
type numberedList struct {
	Metadata listMetadata
	Data     any
}

type listMetadata struct {
	Page  int `json:"page"`
	Limit int `json:"limit"`
	Total int `json:"total"`
}

type numberedEnvelope struct {
	Success   bool         `json:"success"`
	RequestID string       `json:"requestId"`
	Metadata  listMetadata `json:"metadata"`
	Data      any          `json:"data"`
}

// writeData puts data into the envelope that its kind and the dialect want.
func (rq *request) writeData(data any) {
	var body any
	switch d := data.(type) {
	case cursorList:
		body = envelope{true, rq.id, d}
		if rq.api.cfg.Live {
			body = liveCursorList{true, rq.id, d.Data, d.Total, d.Next, d.Prev}
		}
	case html:
		rq.writePage(d)
		return
	case numberedList:
		body = numberedEnvelope{true, rq.id, d.Metadata, d.Data}
	default:
		body = envelope{true, rq.id, d}
		if rq.route.legacy {
			body = d
		}
	}
	rq.write(rq.status, wire.JSON, body)
}

func (rq *request) write(status int, contentType string, body any) {
	rq.w.Header().Set("X-Request-Id", rq.id)
	wire.Write(rq.w, status, contentType, body)
}
