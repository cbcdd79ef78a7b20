package deliver

import (
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
)

// errForbidden is a delivery to an address that no merchant's server has.
var errForbidden = errors.New("webhooks are not sent there")

// networkTransport returns a transport whose every connection is looked at
// when it is dialled, after the name was resolved: a name that resolves to a
// forbidden address is refused like the address itself. No proxy is used,
// since it would dial in our place.
func networkTransport() *http.Transport {
	dialer := &net.Dialer{
		Timeout: Timeout,
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address) },
	}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: maxWorkers,
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: Timeout,
	}
}

// checkAddress refuses what only a server inside a cloud could reach: metadata
// services, link-local and multicast addresses. Loopback and private networks
// are where receivers under test live.
func checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is no address", errForbidden, address)
	}
	ip := plainIP(at.Addr())
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}), isMetadata(ip):
		return fmt.Errorf("%w: %s is a link-local, multicast or metadata address", errForbidden, ip)
	}
	return nil
}

// isMetadata knows the metadata services outside the link-local range.
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

// plainIP takes an IPv4 address out of the IPv6 addresses that carry one:
// mapped, NAT64 and 6to4.
func plainIP(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	b := ip.As16()
	switch {
	case binary.BigEndian.Uint64(b[:8]) == 0x0064ff9b_00000000 && binary.BigEndian.Uint32(b[8:12]) == 0:
		return netip.AddrFrom4([4]byte(b[12:16]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return ip
}

// checkName refuses names that are reserved for documentation: a test that
// uses one must not reach the network, and need not wait for it.
func checkName(host string) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, reserved := range [...]string{"example", "invalid", "example.com", "example.net", "example.org"} {
		if host == reserved || strings.HasSuffix(host, "."+reserved) {
			return fmt.Errorf("%w: %s is a name for documentation only, and nothing answers there", errForbidden, host)
		}
	}
	return nil
}

// CheckURL returns what is wrong with the address of an endpoint, or nil.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("url is malformed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("url must be an http or https address with a host")
	case len(text) > 2048:
		return errors.New("url must have at most 2048 characters")
	}
	return nil
}
