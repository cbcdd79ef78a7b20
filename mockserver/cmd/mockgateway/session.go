package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// defaultAddr is where the gateway listens, and where the commands look for it.
const defaultAddr = "127.0.0.1:4010"

// session is a command's connection to a gateway, and what it prints to.
type session struct {
	admin.Client

	out       io.Writer
	log       log
	transport *http.Transport

	addr, ca string
	json     bool
}

// set adds the flags of every command of a client.
func (s *session) set(set *flag.FlagSet) {
	set.StringVar(&s.addr, "addr", "", "`address` of the gateway, host:port or a URL; empty means that in MOCKGATEWAY_ADDR, or "+defaultAddr)
	set.StringVar(&s.Key, "key", "", "API `key` whose account the command acts on; empty means the default account")
	set.StringVar(&s.ca, "ca", "", "PEM `file` with the certificate of a gateway that serves HTTPS, such as that of -tls-self-signed")
	set.BoolVar(&s.json, "json", false, "print JSON, one value per line")
}

// open finds the gateway.
func (s *session) open(p environment) error {
	if s.addr == "" {
		s.addr = lookup(p.environ, variable("addr"), defaultAddr)
	}
	var err error
	if s.Base, err = baseURL(s.addr, s.ca != ""); err != nil {
		return wrongUsage("-addr or MOCKGATEWAY_ADDR: %v", err)
	}
	s.transport = &http.Transport{} // no proxy: the gateway is on this machine or in this network
	s.Transport = s.transport
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return wrongUsage("-ca: %v", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return wrongUsage("-ca: %s has no certificate in PEM format", s.ca)
		}
		s.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	s.out, s.log = p.out, log{color: colored(p.out, p.environ)}
	return nil
}

// baseURL returns the URL of the gateway at an address, which may be one to listen on.
func baseURL(addr string, secure bool) (string, error) {
	scheme, rest, found := strings.Cut(addr, "://")
	if !found {
		scheme, rest = map[bool]string{false: "http", true: "https"}[secure], addr
	}
	u, err := url.Parse(scheme + "://" + rest)
	if found && (err != nil || scheme != "http" && scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		return "", fmt.Errorf("%q must be host:port, or an http or https URL without a path", addr)
	}
	if found {
		return scheme + "://" + u.Host, nil
	}
	target, err := dialAddr(addr)
	return scheme + "://" + target, err
}

// dialAddr returns the address at which a client on this machine reaches a gateway that
// listens on addr.
func dialAddr(addr string) (string, error) {
	if err := checkAddr(addr); err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(addr)
	switch ip := net.ParseIP(host); {
	case err != nil:
		return "", err
	case port == "0":
		return "", fmt.Errorf("the port of the gateway is needed, not port 0 of %s", addr)
	case host == "" || ip != nil && ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// print writes a line, or with -json the value that it describes.
func (s *session) print(value jsontext.Value, format string, args ...any) error {
	if s.json {
		compact := value.Clone()
		if err := compact.Compact(); err != nil {
			return err
		}
		format, args = "%s", []any{compact}
	}
	_, err := fmt.Fprintf(s.out, format+"\n", args...)
	return err
}
