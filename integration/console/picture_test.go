package console_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// TestPictureOfTheConsole shows the story of an order as the guide does. With PICTURE, the
// path of a file, it writes the picture: see docs/picture.
func TestPictureOfTheConsole(t *testing.T) {
	t.Parallel()
	gw, base := serve(t)
	var failed atomic.Bool
	gw.Webhooks.ServeHost("shop.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !failed.Swap(true) { // the server was being deployed
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	_, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{
		URL: "https://shop.test/webhooks", Secret: gateway.NewSecret("whsec_picture"), Events: []string{"transaction.paid", "transaction.refunded"},
	})
	require.NoError(t, err)
	client, ctx := gw.Client(), t.Context()
	tx, err := client.Transactions.Create(ctx, gateway.TransactionParams{
		ExternalRef: "order-1001", Amount: 15_470, Method: gateway.Pix, Products: []gateway.Product{{Name: "Blue mug", Price: 7735, Quantity: 2}},
		Buyer: gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
	})
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(4*time.Minute))
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Clock.Advance(26*time.Hour))
	_, err = client.Transactions.Refund(ctx, tx.ID, gateway.RefundParams{Amount: 6000, Reason: "one mug arrived broken"})
	require.NoError(t, err)
	require.NoError(t, gw.Wait(ctx))
	require.NoError(t, gw.Clock.Advance(12*time.Minute))

	p := open(t, base, device{})
	p.visit(pagesAt + "/transactions/" + tx.ID)
	assert.Equal(t, "BRL 94.70 of 154.70 left · your server was told ✓", p.text(".headline"))
	timeline := p.text(".timeline")
	for _, part := range []string{"Created", "Paid BRL 154.70", "502 in", "200 in", "Refunded BRL 60.00", "12 min ago"} {
		assert.Contains(t, timeline, part)
	}
	file := os.Getenv("PICTURE")
	if file == "" {
		return
	}
	p.do(chromedp.EmulateViewport(1280, 720))
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, small(t, shot), 0o644))
}

// small returns a screenshot as a PNG with 256 colors, which is half as large.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	size := picture.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
		return c
	}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	weight := func(c color.RGBA) int { // a red word has few pixels, but must stay red
		return count[c] * (1 + int(max(c.R, c.G, c.B)-min(c.R, c.G, c.B)))
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(weight(b), weight(a)) })
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range colors {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var b bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out))
	return b.Bytes()
}
