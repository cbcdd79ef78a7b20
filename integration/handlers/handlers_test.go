package handlers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

func TestHandlers(t *testing.T) {
	t.Parallel()
	for _, a := range apps {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h := a.start(t, a.command, path, time.Now().Add(time.Hour))
			for name, test := range map[string]func(*handler){
				"a payment in the document's dialect": func(h *handler) { payment(h, mockserver.Document) },
				"a payment in the live dialect":       func(h *handler) { payment(h, mockserver.Live) },
				"what every receiver must do":         everyReceiver,
				"accepted":                            accepted,
				"rejected":                            rejected,
				"problems":                            problems,
				"a failing database":                  failingDatabase,
				"a sender that hangs up":              hangsUp,
			} {
				t.Run(name, func(t *testing.T) {
					test(&handler{T: t, url: h.url, db: h.db, output: h.output})
				})
			}
			assert.NotContains(t, h.output.String(), webhooktest.Secret().Reveal())
		})
	}
}

// payment receives the webhooks of a gateway that delivers them twice, and again after its
// secret was changed.
func payment(h *handler, dialect mockserver.Dialect) {
	mock, err := mockserver.New(mockserver.WithDialect(dialect))
	require.NoError(h, err)
	endpoint, err := mock.Webhooks.AddEndpoint(mockserver.Endpoint{URL: h.url, Secret: webhooktest.Secret()})
	require.NoError(h, err)
	require.NoError(h, mock.Webhooks.Duplicate(string(webhook.TransactionPaid)))

	ref := h.order(4990)
	charge, err := mock.Client().Transactions.Create(h.Context(), gateway.TransactionParams{
		ExternalRef: ref, Amount: 4990, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Zoë \u2028 <João> & 名前", Email: "zoe@example.com",
			Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Café ☕ \"500 g\"", Price: 4990}},
	})
	require.NoError(h, err)
	require.NoError(h, mock.Wait(h.Context()))
	assert.Equal(h, "pending", h.state(ref))
	require.NoError(h, mock.Transactions.Pay(charge.ID))
	require.NoError(h, mock.Wait(h.Context()))
	assert.Equal(h, "paid", h.state(ref))
	before := len(h.effects())

	redeliver := func(state string) {
		deliveries := mock.Webhooks.Deliveries()
		require.NotEmpty(h, deliveries)
		for _, d := range deliveries {
			_, stored := h.problem(d.EventID)
			assert.True(h, stored, d.Kind)
			_ = mock.Webhooks.Redeliver(d.ID) // it reports a rejection
		}
		require.NoError(h, mock.Wait(h.Context()))
		for _, d := range mock.Webhooks.Deliveries() {
			status := d.Attempts[len(d.Attempts)-1].Status
			assert.Equal(h, state, strconv.Itoa(status), d.Kind)
		}
	}
	redeliver("200")
	h.exec(`UPDATE orders SET state = 'pending' WHERE ref = $1`, ref) // so that only the event's id tells a duplicate
	require.NoError(h, mock.Webhooks.RotateSecret(endpoint.ID, gateway.NewSecret(oldSecret)))
	redeliver("200")
	assert.Equal(h, "pending", h.state(ref))
	require.NoError(h, mock.Webhooks.RotateSecret(endpoint.ID, gateway.NewSecret("whsec_of_somebody_else")))
	redeliver("401")
	assert.Len(h, h.effects(), before, "no event is stored twice")
}

func everyReceiver(h *handler) {
	webhooktest.Run(h.T, webhooktest.Target{Handler: h.proxy(), Secret: webhooktest.Secret(), Effects: h.effects, Path: path})
}

// accepted sends valid deliveries that a careless handler rejects.
func accepted(h *handler) {
	now := time.Now()
	for name, change := range map[string]func(body []byte) ([]byte, http.Header){
		"white space":        func(b []byte) ([]byte, http.Header) { return signed(indented(b)) },
		"escapes":            func(b []byte) ([]byte, http.Header) { return signed(escaped(b)) },
		"Unicode":            func(b []byte) ([]byte, http.Header) { return signed(member(b, `"name":"Zoë 名前 🙂  "`)) },
		"a byte order mark":  func(b []byte) ([]byte, http.Header) { return signed(append([]byte("\xef\xbb\xbf"), b...)) },
		"invalid UTF-8":      func(b []byte) ([]byte, http.Header) { return signed(member(b, "\"name\":\"\xff\xfe\"")) },
		"NUL and surrogates": func(b []byte) ([]byte, http.Header) { return signed(member(b, `"name":"\u0000\ud800"`)) },
		"numbers": func(b []byte) ([]byte, http.Header) {
			return signed(member(b, `"fee":1e2,"rate":0.10,"large":12345678901234567890`))
		},
		"the old secret":        func(b []byte) ([]byte, http.Header) { return b, webhooktest.Sign(gateway.NewSecret(oldSecret), now, b) },
		"almost too old":        func(b []byte) ([]byte, http.Header) { return b, signedAt(now.Add(-4*time.Minute), b) },
		"a clock that is ahead": func(b []byte) ([]byte, http.Header) { return b, signedAt(now.Add(4*time.Minute), b) },
		"two signatures": func(b []byte) ([]byte, http.Header) {
			return b, webhooktest.SignedByAll(b, gateway.NewSecret("whsec_of_somebody_else"), webhooktest.Secret()).Header
		},
		"equal copies of the headers": func(b []byte) ([]byte, http.Header) {
			header := signedAt(now, b)
			for name, values := range header {
				header[name] = append(values, values...)
			}
			return b, header
		},
		"another content type": func(b []byte) ([]byte, http.Header) {
			header := signedAt(now, b)
			header.Set("Content-Type", "text/plain; charset=latin1")
			return b, header
		},
	} {
		h.Run(name, func(t *testing.T) {
			h := &handler{T: t, url: h.url, db: h.db}
			ref, event := h.order(4990), webhooktest.NewID()
			status, _, body := h.send(delivery(change(paid(event, ref, 4990))))
			assert.Equal(t, http.StatusOK, status)
			assert.JSONEq(t, `{"received":true}`, body)
			assert.Equal(t, "paid", h.state(ref))
			problem, stored := h.problem(event)
			assert.True(t, stored)
			assert.Empty(t, problem)
		})
	}
}

// rejected sends deliveries that are not authentic.
func rejected(h *handler) {
	now := time.Now()
	for name, change := range map[string]func(body []byte) ([]byte, http.Header){
		"unsigned": func(b []byte) ([]byte, http.Header) { return b, http.Header{} },
		"another secret": func(b []byte) ([]byte, http.Header) {
			return b, webhooktest.Sign(gateway.NewSecret("whsec_other"), now, b)
		},
		"a changed body": func(b []byte) ([]byte, http.Header) {
			return bytes.Replace(b, []byte("4990"), []byte("4991"), 1), signedAt(now, b)
		},
		"an encoded body": func(b []byte) ([]byte, http.Header) { return indented(b), signedAt(now, b) },
		"too old":         func(b []byte) ([]byte, http.Header) { return b, signedAt(now.Add(-302*time.Second), b) },
		"too far ahead":   func(b []byte) ([]byte, http.Header) { return b, signedAt(now.Add(10*time.Minute), b) },
		"a newer timestamp": func(b []byte) ([]byte, http.Header) {
			return b, with(signedAt(now.Add(-time.Hour), b), webhook.DefaultTimestampHeader, unix(now))
		},
		"not a timestamp": func(b []byte) ([]byte, http.Header) {
			return b, with(signedAt(now, b), webhook.DefaultTimestampHeader, "now")
		},
		"no timestamp": func(b []byte) ([]byte, http.Header) {
			return b, with(signedAt(now, b), webhook.DefaultTimestampHeader, " ")
		},
		"other letters": func(b []byte) ([]byte, http.Header) {
			return b, with(signedAt(now, b), webhook.DefaultSignatureHeader, "sha256=é")
		},
		"a prefix": func(b []byte) ([]byte, http.Header) {
			return b, with(signedAt(now, b), webhook.DefaultSignatureHeader, "sha256=")
		},
		"too many": func(b []byte) ([]byte, http.Header) { return b, tooMany(signedAt(now, b)) },
		"another timestamp": func(b []byte) ([]byte, http.Header) {
			return b, second(signedAt(now, b), webhook.DefaultTimestampHeader, unix(now.Add(-time.Second)))
		},
		"without a prefix":   func(b []byte) ([]byte, http.Header) { return b, unprefixed(signedAt(now, b)) },
		"in capital letters": func(b []byte) ([]byte, http.Header) { return b, capital(signedAt(now, b)) },
	} {
		h.Run(name, func(t *testing.T) {
			h := &handler{T: t, url: h.url, db: h.db}
			ref, event := h.order(4990), webhooktest.NewID()
			status, _, body := h.send(delivery(change(paid(event, ref, 4990))))
			assert.Equal(t, http.StatusUnauthorized, status, body)
			assert.Equal(t, "pending", h.state(ref))
			_, stored := h.problem(event)
			assert.False(t, stored)
		})
	}
}

// problems sends events that do not agree with the order: they are stored for a person.
func problems(h *handler) {
	ref := h.order(4990)
	for name, body := range map[string]func(event string) []byte{
		"no order": func(event string) []byte { return paid(event, "order-of-somebody-else", 4990) },
		"no reference": func(event string) []byte {
			return bytes.Replace(paid(event, ref, 4990), []byte(`"`+ref+`"`), []byte("null"), 1)
		},
		"another amount": func(event string) []byte { return paid(event, ref, 499) },
		"another currency": func(event string) []byte {
			return bytes.Replace(paid(event, ref, 4990), []byte("BRL"), []byte("CLP"), 1)
		},
	} {
		h.Run(name, func(t *testing.T) {
			h, event := &handler{T: t, url: h.url, db: h.db}, webhooktest.NewID()
			status, _, _ := h.send(webhooktest.Signed(webhooktest.Secret(), body(event)))
			assert.Equal(t, http.StatusOK, status)
			problem, stored := h.problem(event)
			assert.True(t, stored)
			assert.NotEmpty(t, problem)
			assert.Equal(t, "pending", h.state(ref))
		})
	}
	h.Run("paid twice", func(t *testing.T) {
		h, first, second := &handler{T: t, url: h.url, db: h.db}, webhooktest.NewID(), webhooktest.NewID()
		for _, event := range []string{first, second} {
			status, _, _ := h.send(webhooktest.Signed(webhooktest.Secret(), paid(event, ref, 4990)))
			assert.Equal(t, http.StatusOK, status)
		}
		problem, _ := h.problem(first)
		assert.Empty(t, problem)
		problem, _ = h.problem(second)
		assert.NotEmpty(t, problem)
	})
}

// failingDatabase lets the effect of an event fail: the gateway delivers it again.
func failingDatabase(h *handler) {
	ref, event := h.order(4990), webhooktest.NewID()
	delivery := webhooktest.Signed(webhooktest.Secret(), paid(event, ref, 4990))
	h.exec(`ALTER TABLE orders RENAME TO elsewhere`)
	status, header, _ := h.send(webhooktest.Again(delivery))
	h.exec(`ALTER TABLE elsewhere RENAME TO orders`)
	assert.Equal(h, http.StatusServiceUnavailable, status)
	assert.NotEmpty(h, header.Get("Retry-After"))
	_, stored := h.problem(event)
	assert.False(h, stored, "an event whose effect failed must not count as a duplicate")

	status, _, _ = h.send(delivery)
	assert.Equal(h, http.StatusOK, status)
	assert.Equal(h, "paid", h.state(ref))
}

// hangsUp breaks a connection in the middle of a body, which must not end the process.
func hangsUp(h *handler) {
	at, err := url.Parse(h.url)
	require.NoError(h, err)
	ref, event := h.order(4990), webhooktest.NewID()
	r := webhooktest.Signed(webhooktest.Secret(), paid(event, ref, 4990))
	for range 3 {
		var d net.Dialer
		conn, err := d.DialContext(h.Context(), "tcp", at.Host)
		require.NoError(h, err)
		_, err = io.WriteString(conn, "POST "+at.Path+" HTTP/1.1\r\nHost: "+at.Host+"\r\nContent-Length: 1000\r\n"+
			"X-Gateway-Timestamp: "+r.Header.Get("X-Gateway-Timestamp")+"\r\nX-Gateway-Signature: "+r.Header.Get("X-Gateway-Signature")+"\r\n\r\n{")
		require.NoError(h, err)
		h.roundTrip() // so that the app has begun to read the body
		require.NoError(h, conn.Close())
		h.roundTrip() // and has noticed its end
	}
	assert.Equal(h, "pending", h.state(ref))
	status, _, body := h.send(r)
	assert.Equal(h, http.StatusOK, status, body)
	assert.Equal(h, "paid", h.state(ref))
}

// roundTrip sends a request that has no effect.
func (h *handler) roundTrip() {
	h.Helper()
	status, _, _ := h.send(webhooktest.Unsigned([]byte("{}")))
	assert.Equal(h, http.StatusUnauthorized, status)
}

// With a body parser in front, no handler can verify a signature.
func TestABodyParserInFront(t *testing.T) {
	t.Parallel()
	for _, a := range apps {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h := a.start(t, a.mistake, a.path, time.Now().Add(time.Hour))
			ref, event := h.order(4990), webhooktest.NewID()
			status, _, body := h.send(delivery(signed(indented(paid(event, ref, 4990)))))
			assert.Contains(t, []int{http.StatusBadRequest, http.StatusUnauthorized}, status, body)
			assert.Equal(t, "pending", h.state(ref))
			_, stored := h.problem(event)
			assert.False(t, stored)
		})
	}
}

// After the end of a rotation, the old secret is rejected.
func TestTheOldSecretExpires(t *testing.T) {
	t.Parallel()
	for _, a := range apps {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h := a.start(t, a.command, path, time.Now().Add(-time.Second))
			ref := h.order(4990)
			b := paid(webhooktest.NewID(), ref, 4990)
			status, _, body := h.send(webhooktest.Signed(gateway.NewSecret(oldSecret), b))
			assert.Equal(t, http.StatusUnauthorized, status, body)
			assert.Equal(t, "pending", h.state(ref))
			status, _, body = h.send(webhooktest.Signed(webhooktest.Secret(), b))
			assert.Equal(t, http.StatusOK, status, body)
			assert.Equal(t, "paid", h.state(ref))
		})
	}
}

// paid returns the event of a paid order.
func paid(event, ref string, cents int64) []byte {
	return webhooktest.Event{
		Kind: webhook.TransactionPaid, ID: event,
		Data: map[string]any{"correlation_id": ref, "amount": cents, "currency": "BRL"},
	}.Body()
}

func delivery(body []byte, header http.Header) *http.Request {
	r := webhooktest.Unsigned(body)
	maps.Copy(r.Header, header)
	return r
}

func signed(body []byte) ([]byte, http.Header) { return body, signedAt(time.Now(), body) }

func signedAt(at time.Time, body []byte) http.Header {
	return webhooktest.Sign(webhooktest.Secret(), at, body)
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func with(header http.Header, name, value string) http.Header {
	header.Set(name, value)
	return header
}

func second(header http.Header, name, value string) http.Header {
	header.Add(name, value)
	return header
}

func tooMany(header http.Header) http.Header {
	right := header.Get(webhook.DefaultSignatureHeader)
	header.Del(webhook.DefaultSignatureHeader)
	for i := range 8 {
		header.Add(webhook.DefaultSignatureHeader, "sha256="+strings.Repeat(strconv.Itoa(i), 64))
	}
	return second(header, webhook.DefaultSignatureHeader, right)
}

func unprefixed(header http.Header) http.Header {
	return with(header, webhook.DefaultSignatureHeader, strings.TrimPrefix(header.Get(webhook.DefaultSignatureHeader), "sha256="))
}

func capital(header http.Header) http.Header {
	return with(header, webhook.DefaultSignatureHeader, strings.ToUpper(header.Get(webhook.DefaultSignatureHeader)))
}

// indented writes JSON with white space, as no encoder would.
func indented(body []byte) []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, body, " \t", "   ") // body is JSON
	return append([]byte(" \r\n"), append(out.Bytes(), "\n\n"...)...)
}

// escaped writes letters of JSON's names and strings as escapes, which parsers drop.
func escaped(body []byte) []byte {
	return []byte(strings.NewReplacer(`"id"`, `"\u0069d"`, `transaction.paid`, `transaction\u002epaid`, `order-`, `order\u002D`).Replace(string(body)))
}

// member adds members to the event's data.
func member(body []byte, members string) []byte {
	return bytes.Replace(body, []byte(`"data":{`), []byte(`"data":{`+members+`,`), 1)
}
