package deliver_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

func TestRejectedAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"169.254.169.254:80", "169.254.0.1:443", "[fe80::1]:80", "[fe80::1%eth0]:80", "[::ffff:169.254.169.254]:80",
		"[64:ff9b::a9fe:a9fe]:80", "[2002:a9fe:a9fe::1]:80", "[fd00:ec2::254]:80", "[fd20:ce::254]:80",
		"[::ffff:100.100.100.200]:80", "[fd00:ec2::254%eth0]:80",
		"[64:ff9b:1::a9fe:a9fe]:80",          // local NAT64 with a prefix of 96 bits,
		"[64:ff9b:1:a9fe:a9:fe00::]:80",      // of 48 bits,
		"[64:ff9b:1:a9:fe:a9fe::]:80",        // of 56 bits (byte 6 belongs to the network)
		"[64:ff9b:1:abcd:a9:fea9:fe00:0]:80", // and of 64 bits
		"[64:ff9b::6464:64c8]:80", "[64:ff9b:1::a83f:8110]:80",
		"[::169.254.169.254]:80", "[::ffff:0:169.254.169.254]:80",
		"[fe80::5efe:a9fe:a9fe]:80", "[2001:db8::5efe:a9fe:a9fe]:80", "[2001:db8::200:5efe:a9fe:a9fe]:80",
		"[2001:0:a9fe:a9fe::1]:80", "[2001:0:4136:e378:8000:63bf:5601:5601]:80", // Teredo: server, client
		"[2002:a83f:8110::1]:80", "[2002:e000:1::]:80",
		"[2002:a9fe:a9fe::5efe:a00:1]:80", // one of two embedded addresses is forbidden
		"100.100.100.200:80", "168.63.129.16:80", "192.0.0.192:80",
		"224.0.0.1:80", "[ff02::1]:80", "255.255.255.255:80", "nonsense",
	} {
		require.ErrorContains(t, deliver.CheckAddress(address), "webhooks are not sent there", address)
	}
	for _, address := range []string{
		"127.0.0.1:80", "[::1]:80", "10.0.0.1:80", "192.168.1.1:3000", "172.17.0.1:3000", "0.0.0.0:3000",
		"8.8.8.8:443", "[2001:db8::1]:443", "[fd12::1]:80", "[::]:3000", "[64:ff9b::a00:1]:80", "[64:ff9b:1::a00:1]:80",
		"[64:ff9b:1:a00:0:100::]:80", "[2002:a00:1::1]:80", "[2001:4860:4860::8888]:443", "[2001:0:808:808::1]:80",
		"[::ffff:127.0.0.1]:80", "[2606:4700::1111]:443",
	} {
		require.NoError(t, deliver.CheckAddress(address), address)
	}
}

func TestRejectedNames(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"example.com", "shop.example.com", "Shop.Example.ORG.", "shop.example", "a.invalid"} {
		require.ErrorContains(t, deliver.CheckName(host), "documentation", host)
	}
	for _, host := range []string{"localhost", "shop.test", "notexample.com", "example.com.br", "10.0.0.1"} {
		require.NoError(t, deliver.CheckName(host), host)
	}
}

// deliverTo posts one event with a notify_url and returns its first attempt.
func deliverTo(t *testing.T, url string) deliver.Attempt {
	t.Helper()
	sys := newSystem(t)
	sys.post("a", "transaction.paid", &engine.Transaction{ID: "tx_1", NotifyURL: url})
	sys.wait(t)
	return sys.Deliveries("a")[0].Attempts[0]
}

func TestDeliveriesOverTheNetwork(t *testing.T) {
	t.Parallel()
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			_, _ = w.Write([]byte(`{"received":true}` + strings.Repeat("x", 1000) + "\xff"))
		case "/accents":
			_, _ = w.Write([]byte("x" + strings.Repeat("ã", 512)))
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(shop.Close)

	a := deliverTo(t, shop.URL+"/ok")
	assert.True(t, a.OK())
	assert.True(t, strings.HasPrefix(a.Response, `{"received":true}x`))
	assert.Len(t, a.Response, 512)
	assert.Equal(t, "x"+strings.Repeat("ã", 255), deliverTo(t, shop.URL+"/accents").Response)

	_, port, err := net.SplitHostPort(shop.Listener.Addr().String())
	require.NoError(t, err)
	assert.Empty(t, deliverTo(t, "http://shop.localhost:"+port+"/ok").Error, "names under localhost are loopback, whatever DNS says")

	a = deliverTo(t, shop.URL+"/redirect")
	assert.Equal(t, http.StatusTemporaryRedirect, a.Status)
	assert.False(t, a.OK())
	assert.Zero(t, elsewhere)

	a = deliverTo(t, shop.URL+"/close")
	assert.Equal(t, "the connection was closed without a response", a.Error)

	shop.Close()
	closed := deliverTo(t, shop.URL+"/ok").Error
	assert.Contains(t, closed, "connection refused")
	assert.NotContains(t, closed, "/ok", "the URL may hold a secret")
	assert.Contains(t, deliverTo(t, "http://169.254.169.254/latest/meta-data").Error, "link-local")
	assert.Contains(t, deliverTo(t, "https://shop.example/hook").Error, "documentation")
	assert.NotEmpty(t, deliverTo(t, "https://[bad").Error)
}

func TestInMemoryHostsDoNotUseTheNetwork(t *testing.T) {
	t.Parallel()
	sys, shop := newSystem(t), &receiver{}
	sys.Serve("Shop.Example", shop)
	sys.post("a", "transaction.paid", &engine.Transaction{ID: "tx_1", NotifyURL: "https://user:secret@shop.example/hook"})
	sys.wait(t)
	require.Len(t, shop.events(), 1)
	assert.NotEmpty(t, shop.header[0].Get("Authorization"))

	sys.Serve("shop.example", nil)
	sys.post("a", "transaction.paid", &engine.Transaction{ID: "tx_1", NotifyURL: "https://shop.example/hook"})
	sys.wait(t)
	assert.Len(t, shop.events(), 1)
}
