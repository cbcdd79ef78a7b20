package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"
)

// certificate is how HTTPS is served: with the files cert and key, or with a new
// certificate that is written to selfSigned. Without any of them, HTTP is served.
type certificate struct {
	cert, key  string
	selfSigned string
	names      []string // of selfSigned, besides those of this machine
}

func (c certificate) on() bool { return c.cert != "" || c.selfSigned != "" }

func (c certificate) scheme() string {
	if c.on() {
		return "https://"
	}
	return "http://"
}

// curl returns the option with which curl trusts the certificate.
func (c certificate) curl() string {
	switch {
	case c.selfSigned != "":
		return fmt.Sprintf(" --cacert '%s'", c.selfSigned)
	case c.cert != "":
		return " -k"
	}
	return ""
}

func (c certificate) config() (*tls.Config, error) {
	var pair tls.Certificate
	var err error
	if c.selfSigned != "" {
		pair, err = c.create(time.Now())
	} else if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err != nil {
		err = fmt.Errorf("-tls-cert: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, err
}

// create makes a certificate, and writes it without its key, which stays in memory.
func (c certificate) create(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "mockgateway"},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     append([]string{"localhost", "*.localhost"}, slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return name == "*" })...),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA:         true, BasicConstraintsValid: true, // clients trust it as its own authority
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(c.selfSigned, text, 0o644); err != nil { //nolint:gosec // others may read a certificate
		return tls.Certificate{}, fmt.Errorf("-tls-self-signed: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
