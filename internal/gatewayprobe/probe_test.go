package gatewayprobe_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// hookHost is where the receiver is in these tests; the mock delivers to it in memory.
const hookHost = "probe.example"

// probe runs the probe against a mock whose clock follows that of the synctest
// bubble.
func probe(t *testing.T, cfg gatewayprobe.Config, opts ...mockserver.Option) *gatewayprobe.Report {
	t.Helper()
	return probeWith(t, cfg, nil, nil, opts...)
}

// probeWith is probe with middleware around the transports to the gateway and to the
// receiver.
func probeWith(
	t *testing.T, cfg gatewayprobe.Config, change func(http.RoundTripper) http.RoundTripper,
	receive func(http.Handler) http.Handler, opts ...mockserver.Option,
) *gatewayprobe.Report {
	t.Helper()
	own := []mockserver.Option{mockserver.WithStart(time.Now()), mockserver.WithRealtime(1)}
	gw := mockserver.Run(t, append(own, opts...)...)
	cfg.BaseURL, cfg.Key = mockserver.BaseURL, gateway.NewSecret(gw.Key())
	transport := gw.Transport()
	if change != nil {
		transport = change(transport)
	}
	cfg.HTTPClient = &http.Client{Transport: transport}
	cfg.WebhookURL, cfg.Receiver = "https://"+hookHost+"/hooks", &gatewayprobe.Receiver{}
	var receiver http.Handler = cfg.Receiver
	if receive != nil {
		receiver = receive(receiver)
	}
	gw.Webhooks.ServeHost(hookHost, receiver)
	report, err := gatewayprobe.Run(t.Context(), cfg)
	require.NoError(t, err)
	return report
}

// differing lists the rows in which a gateway differs.
func differing(r *gatewayprobe.Report) []string {
	var ids []string
	for _, result := range r.Results {
		if result.Verdict == gatewayprobe.Differs {
			ids = append(ids, result.ID+": "+result.Summary())
		}
	}
	return ids
}

func unknown(r *gatewayprobe.Report) map[string]string {
	list := map[string]string{}
	for _, result := range r.Results {
		if result.Verdict == gatewayprobe.CannotTell {
			list[result.ID] = result.Why
		}
	}
	return list
}

func TestEveryAssumptionHasAnExperimentOrAReason(t *testing.T) {
	t.Parallel()
	steps := gatewayprobe.Steps()
	var ids []string
	for _, s := range steps {
		ids = append(ids, s.ID)
		assert.NotEqual(t, s.Does == "", s.Reason == "",
			"%s needs either an experiment in package gatewayprobe or, in rows.go, the reason why it can't be tested from outside", s.ID)
	}
	var rows []string
	for _, a := range docs.Assumptions() {
		rows = append(rows, a.ID)
	}
	assert.Equal(t, rows, ids)
	for _, id := range gatewayprobe.Known() {
		assert.Contains(t, rows, id, "docs/assumptions.md no longer has this row")
	}
}

func TestTheDocumentDialectAgreesWithEveryRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := probe(t, gatewayprobe.Config{})
		assert.Empty(t, differing(report))
		checkUnknown(t, report, "live-list-item", "live-metadata", "idempotency-key", "hosted-pay", "link-exhausted", "fee-kept")
	})
}

// checkUnknown asserts that exactly the rows without an experiment, and those
// named, are inconclusive.
func checkUnknown(t *testing.T, report *gatewayprobe.Report, also ...string) {
	t.Helper()
	want := map[string]string{}
	for _, s := range gatewayprobe.Steps() {
		if s.Reason != "" {
			want[s.ID] = s.Reason
		}
	}
	got := unknown(report)
	for _, id := range also {
		assert.NotEmpty(t, got[id], id)
		delete(got, id)
	}
	assert.Equal(t, want, got)
}

func TestTheLiveDialectDiffersInTheDialectRowsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := probe(t, gatewayprobe.Config{}, mockserver.WithDialect(mockserver.Live))
		var ids []string
		for _, result := range report.Results {
			if result.Verdict == gatewayprobe.Differs {
				ids = append(ids, result.ID)
				assert.Equal(t, "live", result.Reading, result.ID)
				assert.Equal(t, "document", result.Expected, result.ID)
			}
		}
		var rows []string
		for _, a := range docs.Assumptions() {
			if strings.Contains(a.Knob, "WithDialect") {
				rows = append(rows, a.ID)
			}
		}
		assert.Equal(t, rows, ids)
		checkUnknown(t, report, "fee-kept")
	})
}
