// Package production_test checks the dashboard and the alerting rules, which are a module of
// their own because that needs Prometheus.
package production_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	registries "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// exported are the values of each label of each metric.
type exported map[string]map[string]map[string]bool

// healthy is a merchant's side without work, whose callbacks are not all set.
type healthy struct{}

func (healthy) Health(context.Context) (merchant.Health, error) {
	return merchant.Health{Accounts: []merchant.AccountHealth{{Name: "shop"}}, Skipped: map[string]int{"refunded": 1}}, nil
}

// export makes every measurement that contrib/otel knows, and returns what Prometheus
// gets.
func export(t *testing.T) exported {
	t.Helper()
	registry := registries.NewRegistry()
	exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	require.NoError(t, err)
	telemetry, err := otelgateway.New(otelgateway.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	require.NoError(t, err)
	_, err = telemetry.WatchMerchant(healthy{})
	require.NoError(t, err)
	observe := telemetry.OutboxObserver()
	for _, event := range []operations.Event{
		operations.EventDone, operations.EventRejected, operations.EventRetry, operations.EventUnknown, operations.EventNotApplied, operations.EventSearching,
		operations.EventAmbiguous, operations.EventSendLimit, operations.EventHandlerFailed, operations.EventDead, operations.EventUnhandled, operations.EventLate,
	} {
		observe(t.Context(), operations.Observation{Event: event, Account: "shop", Kind: "transactions.refund", Age: time.Second, Err: errors.New("failed")})
	}
	calls(t, telemetry)
	families, err := registry.Gather()
	require.NoError(t, err)
	found := make(exported)
	for _, family := range families {
		names := []string{family.GetName()}
		if strings.HasPrefix(family.GetType().String(), "HISTOGRAM") {
			names = []string{family.GetName() + "_bucket", family.GetName() + "_count", family.GetName() + "_sum"}
		}
		for _, name := range names {
			found[name] = make(map[string]map[string]bool)
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					found.add(name, label.GetName(), label.GetValue())
				}
			}
			if strings.HasSuffix(name, "_bucket") {
				found.add(name, "le", "1")
			}
		}
	}
	return found
}

func (e exported) add(metric, label, value string) {
	if e[metric][label] == nil {
		e[metric][label] = make(map[string]bool)
	}
	e[metric][label][value] = true
}

// calls makes a call with each outcome that an alert names.
func calls(t *testing.T, telemetry *otelgateway.Telemetry) {
	t.Helper()
	gw := mockserver.Run(t)
	client := func(via network) *gateway.Client {
		c, err := gw.Client().With(gateway.WithObserver(telemetry.Observer()), gateway.WithBackoff(time.Microsecond, time.Microsecond),
			gateway.WithHTTPClient(&http.Client{Transport: via}))
		require.NoError(t, err)
		return c
	}
	problem := func(code int) network {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(strings.NewReader(`{"title":"failed","status":` + strconv.Itoa(code) + `}`)),
			}, nil
		}
	}
	for want, via := range map[error]network{
		gateway.ErrUnauthorized: problem(http.StatusUnauthorized),
		gateway.ErrForbidden:    problem(http.StatusForbidden),
		gateway.ErrServer:       problem(http.StatusInternalServerError),
	} {
		_, err := client(via).Transactions.Get(t.Context(), id)
		require.ErrorIs(t, err, want)
	}
	_, err := client(problem(http.StatusInternalServerError)).Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 1})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = client(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}).Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 1})
	require.ErrorIs(t, err, gateway.ErrNotSent)
}

const id = "0190a8f0-0000-7000-8000-000000000000"

// network responds to requests.
type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// enumerated are the labels whose values are all exported.
var enumerated = map[string]bool{
	"gateway_outbox_state": true, "gateway_outbox_event": true, "gateway_webhook_state": true, "gateway_merchant_callback_state": true,
	"gateway_outcome": true, "error_type": true,
}

// unknown returns the metrics, labels and values of an expression that are not exported.
func (e exported) unknown(t *testing.T, expression string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err, expression)
	known := make(map[string]bool) // labels of the expression's metrics
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, e.unknownIn(selector)...)
			for label := range e[selector.Name] {
				known[label] = true
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				if !known[label] {
					names = append(names, label)
				}
			}
		}
		return nil
	})
	return names
}

func (e exported) unknownIn(selector *parser.VectorSelector) (names []string) {
	if e[selector.Name] == nil {
		return []string{selector.Name}
	}
	for _, m := range selector.LabelMatchers {
		values := e[selector.Name][m.Name]
		switch {
		case m.Name == model.MetricNameLabel:
		case values == nil:
			names = append(names, m.Name)
		case enumerated[m.Name] && (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp):
			for value := range strings.SplitSeq(m.Value, "|") {
				if !values[value] {
					names = append(names, value)
				}
			}
		}
	}
	return names
}

func TestEveryAlertReadsMetricsThatExist(t *testing.T) {
	t.Parallel()
	e := export(t)
	for _, rule := range rules(t) {
		assert.Empty(t, e.unknown(t, rule.Expr), rule.Alert)
	}
}

// rules reads the alerting rules as Prometheus does.
func rules(t *testing.T) (list []rulefmt.Rule) {
	t.Helper()
	text, err := os.ReadFile("alerts.yaml")
	require.NoError(t, err)
	groups, failed := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, failed)
	for _, group := range groups.Groups {
		list = append(list, group.Rules...)
	}
	require.NotEmpty(t, list)
	return list
}

// Each alert has a section in the guide, and each section its alert.
func TestEveryAlertHasASectionInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/production.md")
	require.NoError(t, err)
	var sections, alerts []string
	for _, heading := range regexp.MustCompile(`(?m)^### (Gateway\w+)$`).FindAllStringSubmatch(string(guide), -1) {
		sections = append(sections, heading[1])
	}
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
		assert.Equal(t, "https://github.com/gateway-go/gateway/blob/main/docs/production.md#"+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"])
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
	}
	assert.Equal(t, alerts, sections)
}

func TestEveryPanelReadsMetricsThatExist(t *testing.T) {
	t.Parallel()
	e := export(t)
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr         string `json:"expr"`
				LegendFormat string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Query any `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	assert.NotEmpty(t, dashboard.Panels)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$account", ".*")
	legend := regexp.MustCompile(`{{(\w+)}}`)
	for _, panel := range dashboard.Panels {
		assert.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			expression := variables.Replace(target.Expr)
			assert.NotContains(t, expression, "$", panel.Title)
			assert.Empty(t, e.unknown(t, expression), panel.Title)
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.Contains(t, target.Expr, label[1], panel.Title)
			}
		}
	}
	require.Len(t, dashboard.Templating.List, 2)
	query, ok := dashboard.Templating.List[1].Query.(map[string]any)
	require.True(t, ok)
	assert.Equal(t, "label_values(gateway_outbox_operations, gateway_account)", query["query"])
	assert.NotNil(t, e["gateway_outbox_operations"]["gateway_account"])
}

func TestAWrongNameIsFound(t *testing.T) {
	t.Parallel()
	e := export(t)
	for expression, wrong := range map[string]string{
		`gateway_merchant_problem > 0`:                               "gateway_merchant_problem",
		`gateway_outbox_operations{gateway_state="dead"} > 0`:        "gateway_state",
		`gateway_outbox_operations{gateway_outbox_state="died"}`:     "died",
		`sum by (gateway_acount) (gateway_outbox_operations)`:        "gateway_acount",
		`rate(gateway_outbox_events_total{error_type="unauth"}[5m])`: "unauth",
	} {
		assert.Equal(t, []string{wrong}, e.unknown(t, expression), expression)
	}
}

// durations returns the durations that a row of the guide's table of timings states, of which there
// may be several.
func durations(t *testing.T, row string) (list []time.Duration) {
	t.Helper()
	guide, err := os.ReadFile("../../../docs/merchant.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(guide), "\n| "+row+" | ")
	require.True(t, found, "the table has the row %q", row)
	text, _, _ := strings.Cut(rest, " |")
	units := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour}
	for _, is := range regexp.MustCompile(`(\d+) (ms|s|min|h|days?)\b`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(is[1])
		require.NoError(t, err)
		list = append(list, time.Duration(n)*units[is[2]])
	}
	require.NotEmpty(t, list, row)
	return list
}

// An alert is quiet about what Run does by itself in time, and comes before that has given up.
func TestTheAlertsFitTheTimings(t *testing.T) {
	t.Parallel()
	threshold := regexp.MustCompile(`> (\d+)$`)
	alerts := make(map[string]rulefmt.Rule)
	for _, rule := range rules(t) {
		alerts[rule.Alert] = rule
	}
	after := func(alert string) (value, wait time.Duration) {
		found := threshold.FindStringSubmatch(strings.TrimSpace(alerts[alert].Expr))
		require.Len(t, found, 2, alert)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return time.Duration(n) * time.Second, time.Duration(alerts[alert].For)
	}
	lists, searches, paid := durations(t, "Lists of what is paid"), durations(t, "Search for disputes and chargebacks"), durations(t, "Comparison of what is paid")
	late, _ := after("GatewayComparisonsLate")
	assert.Greater(t, late, lists[len(lists)-1], "a list that failed is read again")
	assert.Greater(t, late, searches[0])
	assert.Less(t, late, paid[0], "before the next comparison is due")

	callback := durations(t, "A callback") // its timeout, the first wait and the longest one
	late, _ = after("GatewayCallbacksLate")
	assert.Greater(t, late, callback[0])
	assert.Less(t, late, callback[2])
	_, wait := after("GatewayCallbackFailing")
	assert.Greater(t, wait, 15*callback[1], "five failures make a problem")
	assert.Less(t, wait, callback[2])

	late, _ = after("GatewayEventsLate")
	assert.Greater(t, late, durations(t, "An event that no reading confirms")[0])
	assert.Greater(t, late, durations(t, "Adoption")[0], "the lease of a process that died")

	_, wait = after("GatewayUnhandled")
	assert.GreaterOrEqual(t, wait, durations(t, "A fact whose callback is nil")[0], "a deploy may take as long")
	_, wait = after("GatewayUnknown")
	assert.Greater(t, wait, durations(t, "A sale by link")[0], "a resource without a reference may be a subscription's")
}
