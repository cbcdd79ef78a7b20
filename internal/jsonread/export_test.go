package jsonread

import "fmt"

// BothReadings parses body with the fast scan and with the JSON package and
// returns both results; scanned is false if the scan gave up.
func BothReadings(body []byte) (fast []string, scanned bool, slow []string, err error) {
	d := new(Document)
	scanned = d.Scan(body) && d.Kind(0) == '{'
	if scanned {
		fast = d.describe()
	}
	d = &Document{body: body}
	if err = d.parse(); err == nil {
		slow = d.describe()
	}
	return fast, scanned, slow, err
}

func (d *Document) describe() []string {
	var out []string
	for i := range d.nodes {
		text := d.Raw(i)
		if d.Kind(i) == '"' {
			text = d.Text(i)
		}
		out = append(out, fmt.Sprintf("%s %s %q ends %d", d.Kind(i), d.Name(i), text, d.nodes[i].end))
	}
	return out
}

// PlainPrefix is plainPrefix.
func PlainPrefix(b []byte, i int) int { return plainPrefix(b, i) }
