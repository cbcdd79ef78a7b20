package httpapi

import (
	"net/http"
	"strconv"
)

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
	case numberedList:
		body = numberedEnvelope{true, rq.id, d.Metadata, d.Data}
	default:
		body = envelope{true, rq.id, d}
		if rq.route.legacy {
			body = d
		}
	}
	rq.write(rq.status, "application/json", body)
}

func (rq *request) write(status int, contentType string, body any) {
	b, err := marshal(body)
	if err != nil {
		// No view can fail to encode; should one, it must not look like a success.
		status, b = http.StatusInternalServerError, []byte(`{"title":"Internal Server Error","status":500}`)
	}
	h := rq.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("X-Request-Id", rq.id)
	rq.w.WriteHeader(status)
	_, _ = rq.w.Write(b) // the client is gone: nobody to tell
}
