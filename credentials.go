package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/gateway-go/gateway/internal/spec"
)

// Credential is how a client authenticates. It prints as "[redacted]" with every
// fmt verb, in slog and in JSON. The zero Credential is rejected.
//
// The gateway accepts a secret key in three forms: [BearerToken] (recommended),
// [APIKey] and [BasicToken]. Legacy v1 endpoints accept only APIKey.
type Credential struct {
	// The closure hides the key from code that prints by reflection.
	set  func(ctx context.Context, host string, h http.Header) error
	live bool  // a key of the production environment
	err  error // why the credential can't be used
}

// BearerToken sends the key as "Authorization: Bearer …".
func BearerToken(key string) Credential {
	return headerCredential("Authorization", "Bearer "+key, key)
}

// APIKey sends the key in the apiKey header, the only form that legacy v1
// endpoints accept.
func APIKey(key string) Credential {
	return headerCredential(apiKeyHeader, key, key)
}

// BasicAuth sends a username and a password unchanged. The interface document
// says username "token" and password "x", where "token" stands for the key; use
// [BasicToken] for that.
func BasicAuth(username, password string) Credential {
	if strings.Contains(username, ":") {
		return Credential{err: errors.New("gateway: basic authentication does not allow a colon in the username")}
	}
	pair := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	return headerCredential("Authorization", "Basic "+pair, username)
}

// BasicToken sends the key with basic authentication: the key as the username
// and "x" as the password.
func BasicToken(key string) Credential { return BasicAuth(key, "x") }

// CredentialFunc calls source before every attempt of every call, for keys that
// rotate. source should return a key held in memory. If it returns an error, the
// call ends without another attempt.
func CredentialFunc(source func(context.Context) (Credential, error)) Credential {
	if source == nil {
		return Credential{err: errors.New("gateway: CredentialFunc needs a function")}
	}
	return Credential{set: func(ctx context.Context, host string, h http.Header) error {
		credential, err := source(ctx)
		if err != nil {
			return fmt.Errorf("credential: %w", err)
		}
		if err := credential.check(host); err != nil {
			return err
		}
		return credential.set(ctx, host, h)
	}}
}

// apiKeyHeader is the apiKey header's name in net/http's canonical form; header
// names are case-insensitive.
const apiKeyHeader = "Apikey"

func headerCredential(name, value, key string) Credential {
	if err := checkKey(key); err != nil {
		return Credential{err: err}
	}
	values := []string{value}
	return Credential{
		set: func(_ context.Context, _ string, h http.Header) error {
			h[name] = values[:1:1]
			return nil
		},
		live: strings.HasPrefix(key, "sk_live_"),
	}
}

// checkKey rejects a string that can't be a secret key. Its error never
// contains the string.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("gateway: the API key is empty: pass the secret key of your account, for instance from GATEWAY_API_KEY")
	case strings.HasPrefix(key, "pk_"):
		return errors.New("gateway: the API key is a public key (pk_…), which is for browsers: use the secret key (sk_…) of your account")
	case strings.HasPrefix(key, "Bearer "), strings.HasPrefix(key, "Basic "):
		return errors.New("gateway: the API key starts with the name of an authentication scheme: pass the key alone")
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c <= ' ' || c >= 0x7f:
			return errors.New("gateway: the API key contains a byte that is not allowed in a header: check for spaces, line breaks and quotes around it")
		case c == '"' || c == '\'' || c == '`':
			return errors.New("gateway: the API key contains a quotation mark: pass the key without the quotes around it")
		}
	}
	return nil
}

// check rejects a credential that can't be used against host.
func (c Credential) check(host string) error {
	switch {
	case c.err != nil:
		return c.err
	case c.set == nil:
		return errors.New("gateway: the credential is empty: create one with BearerToken, APIKey, BasicToken or CredentialFunc")
	case c.live && strings.Contains(strings.ToLower(host), "sandbox"):
		return fmt.Errorf("gateway: the API key is a production key (sk_live_…), but %s is a sandbox host: "+
			"use the sandbox key (sk_test_…), or the production address", host)
	}
	return nil
}

// isLoopback reports whether host, with or without a port, is a loopback
// address.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return spec.IsLoopback(strings.Trim(host, "[]"))
}

// String returns "[redacted]".
func (Credential) String() string { return redacted }

// Format writes "[redacted]" for every verb.
func (Credential) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue returns "[redacted]".
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]".
func (Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }
