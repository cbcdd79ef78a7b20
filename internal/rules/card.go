package rules

import "strings"

// HasTokenPrefix reports whether s starts like a payment token of the
// client-side payment element.
func HasTokenPrefix(s string) bool {
	return IsSingleUse(s) || strings.HasPrefix(s, "pgpm_")
}

// IsSingleUse reports whether a token pays once; the other kind is reusable.
func IsSingleUse(token string) bool { return strings.HasPrefix(token, "pgct_") }

const noCardData = "card data must never be sent: send the token that the client-side payment element made"

// LooksLikeCard reports whether the whole of s, spaces and dashes aside, is
// what a card number looks like: 13 to 19 digits that start with 2 to 6 and
// pass the Luhn check. Substrings do not count: one random reference in 140
// holds 13 digits that pass.
func LooksLikeCard(s string) bool {
	digits := make([]byte, 0, 19)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9' && len(digits) < 19:
			digits = append(digits, c-'0')
		case c == ' ' || c == '-':
		default:
			return false
		}
	}
	if len(digits) < 13 || digits[0] < 2 || digits[0] > 6 {
		return false
	}
	sum := 0
	for i, d := range digits {
		n := int(d)
		if (len(digits)-i)%2 == 0 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// cardData reports every member, at any depth, that is named like card data or
// whose value is a card number. References, SKUs, phones, documents, Pix keys
// and ids are left out: they hold long numbers by nature.
func (c *checker) cardData() {
	if !c.doc.query && c.mayHoldCard() {
		c.scan(c.doc.object(Object{index: -1}))
	}
}

// mayHoldCard is a quick look at every value and name, wherever they stand: it
// is true for whatever scan reports, and for little else.
func (c *checker) mayHoldCard() bool {
	for i := range c.doc.nodes {
		n := &c.doc.nodes[i]
		if n.escaped || c.isCard(n) {
			return true
		}
		if n.nameEnd > n.name {
			if name := view(c.doc.body[n.name:n.nameEnd]); name == "card" || IsCardName(name) {
				return true
			}
		}
	}
	return false
}

// scan looks at the members of o.
func (c *checker) scan(o *Object) {
	nodes := c.doc.nodes
	for i := o.at + 1; i < int(nodes[o.at].end); i = int(nodes[i].end) {
		c.scanMember(o, c.doc.name(&nodes[i]), -1, i)
	}
}

func (c *checker) scanMember(o *Object, name string, index, at int) {
	nodes := c.doc.nodes
	n := &nodes[at]
	switch {
	case n.kind == '[':
		for j, e := 0, at+1; e < int(n.end); j, e = j+1, int(nodes[e].end) {
			c.scanMember(o, name, j, e)
		}
	case n.kind != 'n' && IsCardName(name), n.kind == '{' && name == "card",
		c.isCard(n) && !HoldsLongNumber(name):
		child := Object{c: c, parent: o, name: name, index: index, at: at}
		child.Fail("", CodeInvalid, noCardData)
	case n.kind == '{':
		c.scan(c.doc.object(Object{parent: o, name: name, index: index, at: at}))
	}
}

// isCard reports whether a value is a text or a number that looks like a card's.
func (c *checker) isCard(n *node) bool {
	length := n.rawEnd - n.raw
	switch {
	case length < 13 || length > 64:
		return false
	case n.kind == '0':
		return LooksLikeCard(view(c.doc.raw(n)))
	case n.kind == '"':
		return LooksLikeCard(c.doc.text(n))
	default:
		return false
	}
}

// IsCardName reports whether a member is named like card data.
func IsCardName(name string) bool {
	switch name {
	case "card_number", "cardNumber", "pan", "cvv", "cvc", "security_code":
		return true
	}
	return false
}

// HoldsLongNumber reports whether a member holds long numbers by nature, which
// then are no card numbers.
func HoldsLongNumber(name string) bool {
	switch name {
	case "external_ref", "externalRef", "externalId", "external_id", "idempotency_key", "sku", "phone", "number", "document",
		"pix_key_value", "pixKey", "id", "customer_id", "token", "tracking_code":
		return true
	}
	return false
}
