package respond_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

func TestABodyThatCannotBeEncodedIsAnInternalServerError(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	respond.Write(w, http.StatusOK, respond.JSON, respond.Plain{Error: "ERROR", Message: "\xff"})
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.JSONEq(t, `{"title":"Internal Server Error","status":500}`, w.Body.String())
}
