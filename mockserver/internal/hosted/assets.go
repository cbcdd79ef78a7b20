package hosted

import (
	"embed"
	"hash/crc32"
	"html/template"
	"net/http"
	"strconv"
	"sync"
)

//go:embed assets
var assets embed.FS

//go:embed page.html
var pageText string

// pageTemplate is parsed on first use: most servers show no page.
var pageTemplate = sync.OnceValue(func() *template.Template { //nolint:gochecknoglobals // never changes
	return template.Must(template.New("").Parse(pageText))
})

// assetVersion changes with the page's files, so that browsers may cache them.
var assetVersion = sync.OnceValue(func() string { //nolint:gochecknoglobals // never changes
	sum := uint32(0)
	for name := range assetTypes() {
		text, _ := assets.ReadFile("assets/" + name) // it is embedded
		sum ^= crc32.ChecksumIEEE(text)
	}
	return strconv.FormatUint(uint64(sum), 36)
})

func assetTypes() map[string]string {
	return map[string]string{
		"checkout.css": "text/css; charset=utf-8", "checkout.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	}
}

// asset serves one of the page's files.
func (v *visit) asset(name string) {
	kind, known := assetTypes()[name]
	switch {
	case !known:
		v.render(http.StatusNotFound, &page{State: "missing"})
		return
	case !v.allows(http.MethodGet):
		return
	}
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		v.fail(http.StatusInternalServerError, err.Error())
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "public, max-age=86400")
	_, _ = v.w.Write(text) //nolint:gosec // an embedded file; it fails only if the buyer has left
}
