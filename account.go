package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// Account identifies an account at the gateway in what is stored about it, such
// as webhook events and operations. See [WithAccount].
type Account struct {
	// Name is the name that you chose; "" without [WithAccount].
	Name string

	// Fingerprint identifies the address of the gateway, and with it the
	// environment: production and sandbox have different base URLs. It is a hash
	// of the base URL's scheme, host and path, 16 characters long, and the same in
	// every process and release. It does not depend on the credential.
	Fingerprint string
}

// ErrAccountConflict reports that what is stored of an account was stored with another base
// URL, such as that of the sandbox, or that package merchant has the account of an outbox.
// Nothing was changed or sent. The text says what to do, such as the statement that accepts
// the new address of an account that has moved.
var ErrAccountConflict = errors.New("gateway: the name of the account is in use for another one")

// WithAccount names the account that the client's credential belongs to, such as
// "shop-br". Stores keep what belongs to different accounts apart by this name:
// choose one for each account and environment, and never change it. The name
// stays when the key is rotated. It has 1 to 64 characters: letters a to z and A
// to Z, digits, '-', '_' and '.'.
//
// The gateway never sees the name.
func WithAccount(name string) Option {
	return func(s *settings) error {
		if err := spec.CheckAccountName(name); err != nil {
			return fmt.Errorf("gateway: WithAccount: %w", err)
		}
		s.account = name
		return nil
	}
}

// Account returns the account that the client belongs to. Clients of one account
// have the same Account, also after a key rotation.
func (c *Client) Account() Account {
	return Account{Name: c.settings.account, Fingerprint: c.fingerprint()}
}

// fingerprint hashes the normalized base URL: scheme and host are
// case-insensitive, and a default port may be written or left out.
func (c *Client) fingerprint() string {
	scheme, host := strings.ToLower(c.base.Scheme), strings.ToLower(c.host)
	if name, port, err := net.SplitHostPort(host); err == nil && port == defaultPort(scheme) {
		host = name
		if strings.Contains(name, ":") { // an IPv6 address
			host = "[" + name + "]"
		}
	}
	sum := sha256.Sum256([]byte(scheme + "://" + host + c.base.EscapedPath()))
	return hex.EncodeToString(sum[:8])
}

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}
