package jsonread

import "fmt"

// BothReadings reads body with the fast scan and with the JSON package and
// returns both results; scanned is false if the scan gave up.
func BothReadings(body []byte) (quick []string, scanned bool, whole []string, err error) {
	d := new(Document)
	scanned = d.Scan(body) && d.Kind(0) == '{'
	if scanned {
		quick = d.describe()
	}
	d = &Document{body: body}
	if err = d.parse(); err == nil {
		whole = d.describe()
	}
	return quick, scanned, whole, err
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
