package deliver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// errForbidden rejects an address that can't be a merchant's server.
var errForbidden = errors.New("webhooks are not sent there")

// networkTransport returns a transport that checks the address of every connection
// when it is dialed, after the name was resolved. It uses no proxy, which would
// bypass the check.
func networkTransport(timeout time.Duration, anyCertificate bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: timeout,
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) },
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, loopback(address))
		},
		MaxIdleConnsPerHost: maxWorkers,
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: timeout,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: anyCertificate}, //nolint:gosec // an option for certificates that a test has made
	}
}

// loopback returns the address with localhost for a name under localhost, which few
// resolvers know. RFC 6761 reserves these names for the loopback interface.
func loopback(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && strings.HasSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), ".localhost") {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

// checkAddress rejects metadata services, link-local and multicast addresses; receivers
// under test are on loopback and private networks.
func checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not an address", errForbidden, address)
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, target := range append(embedded(ip), ip) {
		if target.IsLinkLocalUnicast() || target.IsMulticast() || target == netip.AddrFrom4([4]byte{255, 255, 255, 255}) ||
			isMetadata(target) {
			return fmt.Errorf("%w: %s is a link-local, multicast or metadata address", errForbidden, ip)
		}
	}
	return nil
}

// isMetadata reports whether an address is a metadata service outside the
// link-local range.
func isMetadata(ip netip.Addr) bool {
	switch ip.String() {
	case "100.100.100.200", // Alibaba Cloud
		"168.63.129.16", // Azure
		"192.0.0.192",   // Oracle Cloud
		"fd00:ec2::254", // AWS
		"fd20:ce::254":  // Google Cloud
		return true
	}
	return false
}

// embedded returns the IPv4 addresses that a translator or a tunnel may extract
// from an IPv6 address. If their position depends on a prefix length that only the
// network knows, it returns every candidate.
func embedded(ip netip.Addr) []netip.Addr {
	if ip.Is4() {
		return nil
	}
	b := ip.As16()
	v4 := func(at ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}) }
	var found []netip.Addr
	switch middle := binary.BigEndian.Uint32(b[8:12]); {
	case [12]byte(b[:12]) == [12]byte{}, // IPv4-compatible, RFC 4291
		middle == 0xffff0000,                       // IPv4-translated, RFC 2765
		middle == 0x00005efe, middle == 0x02005efe: // ISATAP, RFC 5214
		found = append(found, v4(12, 13, 14, 15))
	}
	switch prefix := binary.BigEndian.Uint32(b[:4]); {
	case prefix == 0x0064ff9b && b[4] == 0 && b[5] == 1: // local NAT64, RFC 8215
		// The prefix may have 48, 56, 64 or 96 bits; byte 8 is skipped, RFC 6052.
		found = append(found, v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12), v4(12, 13, 14, 15))
	case prefix == 0x0064ff9b: // NAT64, RFC 6052
		found = append(found, v4(12, 13, 14, 15))
	case prefix>>16 == 0x2002: // 6to4, RFC 3056
		found = append(found, v4(2, 3, 4, 5))
	case prefix == 0x20010000: // Teredo, RFC 4380: the server, and the client inverted
		client := v4(12, 13, 14, 15).As4()
		for i := range client {
			client[i] = ^client[i]
		}
		found = append(found, v4(4, 5, 6, 7), netip.AddrFrom4(client))
	}
	return found
}

// checkName rejects names that are reserved for documentation, so that a test that
// uses one neither reaches the network nor waits for it.
func checkName(host string) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, reserved := range [...]string{"example", "invalid", "example.com", "example.net", "example.org"} {
		if host == reserved || strings.HasSuffix(host, "."+reserved) {
			return fmt.Errorf("%w: %s is reserved for documentation, so no server has this name", errForbidden, host)
		}
	}
	return nil
}

// CheckURL validates the URL of an endpoint.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("url is malformed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("url must be an http or https address with a host")
	case u.Port() != "" && !spec.IsPort(u.Port()):
		return errors.New("url must have a port from 1 to 65535")
	case len(text) > 2048:
		return errors.New("url must have at most 2048 characters")
	}
	return nil
}

// CheckRetries validates the times of retries.
func CheckRetries(after []time.Duration) error {
	if len(after) > MaxRetries {
		return fmt.Errorf("at most %d retries", MaxRetries)
	}
	last := time.Duration(0)
	for _, at := range after {
		if at <= last || at > MaxRetryTime {
			return fmt.Errorf("%s is not after the attempt before it, or after %s", at, MaxRetryTime)
		}
		last = at
	}
	return nil
}
