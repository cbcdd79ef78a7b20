package rules

import "fmt"

// BothReadings reads body by the quick scan and by the JSON package and returns
// what each made of it; scanned is false where the scan gave up.
func BothReadings(body []byte) (quick []string, scanned bool, whole []string, err error) {
	d := &Document{body: body}
	scanned = d.scan() && d.nodes[0].kind == '{'
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
		n := &d.nodes[i]
		text := string(d.raw(n))
		if n.kind == '"' {
			text = d.text(n)
		}
		out = append(out, fmt.Sprintf("%s %s %q ends %d", n.kind, d.name(n), text, n.end))
	}
	return out
}
