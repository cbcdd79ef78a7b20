package merchant_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gateway-go/gateway/database"
)

// manifest is what the test reads of an object of Kubernetes.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas int
		Strategy struct {
			RollingUpdate struct{ MaxSurge, MaxUnavailable *int }
		}
		MinAvailable int
		Selector     any
		Ports        []struct{ TargetPort string }
		Template     struct{ Spec pod }
	}
}

type pod struct {
	RestartPolicy                 string
	TerminationGracePeriodSeconds int
	AutomountServiceAccountToken  *bool
	SecurityContext               struct{ RunAsNonRoot bool }
	Containers                    []container
}

type container struct {
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int
	}
	Env                                         []variable
	StartupProbe, LivenessProbe, ReadinessProbe probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	Resources struct {
		Requests, Limits map[string]string
	}
}

type variable struct {
	Name, Value string
	ValueFrom   struct{ SecretKeyRef struct{ Name string } }
}

type probe struct {
	HTTPGet                                         struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds, FailureThreshold, TimeoutSeconds int
}

// manifests reads the objects of the guide by their kinds. The names of members are in lower case,
// as package yaml expects those of a struct.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	text, err := os.ReadFile("../../docs/kubernetes.yaml")
	require.NoError(t, err)
	all := make(map[string]manifest)
	names := regexp.MustCompile(`(?m)([{ ,-])([a-zA-Z]+):`)
	lower := names.ReplaceAllStringFunc(string(text), func(s string) string {
		if strings.Contains(s, "httpGet") {
			return s
		}
		return strings.ToLower(s)
	})
	for objects := yaml.NewDecoder(bytes.NewBufferString(lower)); ; {
		var m manifest
		if err := objects.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		require.NotContains(t, all, m.Kind)
		all[m.Kind] = m
	}
	return all
}

// secret returns the secret that a variable is read from.
func (c *container) secret(variable string) string {
	for _, e := range c.Env {
		if e.Name == variable {
			return e.ValueFrom.SecretKeyRef.Name
		}
	}
	return ""
}

// mib reads a size such as 512Mi.
func mib(t *testing.T, size string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSuffix(size, "B"), "Mi"))
	require.NoError(t, err, size)
	return n
}

// said returns the number that a guide states.
func said(t *testing.T, guide, pattern string) int {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + guide)
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindStringSubmatch(strings.ReplaceAll(string(text), "\n", " "))
	require.Len(t, found, 2, "%s says %s", guide, pattern)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

// The numbers of the manifest are those that the guides state, and fit each other.
func TestTheManifestFitsTheGuides(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	deployment, pdb := all["Deployment"].Spec, all["PodDisruptionBudget"].Spec
	shop := deployment.Template.Spec
	require.Len(t, shop.Containers, 1)
	c := shop.Containers[0]

	// It ends in time: the load balancer, then Shutdown, then what Run has begun.
	shutdown := said(t, "production.md", `closing, cancel := context.WithTimeout\(context.WithoutCancel\(ctx\), (\d+)\*time.Second\)`)
	run := 60 * map[string]int{"two": 2}[word(t, "production.md", `finishes what it has begun, up to (\w+) minutes for a request`)]
	require.NotZero(t, run)
	assert.GreaterOrEqual(t, shop.TerminationGracePeriodSeconds, c.Lifecycle.PreStop.Sleep.Seconds+shutdown+run)
	assert.Equal(t, said(t, "production.md", `the manifest gives it (\d+) seconds`), shop.TerminationGracePeriodSeconds)
	assert.Positive(t, c.Lifecycle.PreStop.Sleep.Seconds)

	// It is asked what the handlers of the guide respond to, on a port that the service does not have.
	for path, is := range map[string][]probe{"/livez": {c.LivenessProbe, c.StartupProbe}, "/readyz": {c.ReadinessProbe}} {
		for _, p := range is {
			assert.Equal(t, path, p.HTTPGet.Path)
			assert.Equal(t, "probes", p.HTTPGet.Port)
		}
	}
	service := all["Service"].Spec
	require.Len(t, service.Ports, 1)
	assert.Equal(t, "http", service.Ports[0].TargetPort)
	var ports []string
	for _, p := range c.Ports {
		ports = append(ports, p.Name)
	}
	assert.Equal(t, []string{"http", "probes"}, ports)
	assert.LessOrEqual(t, c.ReadinessProbe.TimeoutSeconds, c.ReadinessProbe.PeriodSeconds)
	// Open waits for all gateways before the process listens.
	open := said(t, "merchant.md", "\\| `Open` \\| waits at most (\\d+) s for all gateways")
	assert.Greater(t, c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold, 2*open)

	// Both releases run during a rollout, and one process always does.
	require.NotNil(t, deployment.Strategy.RollingUpdate.MaxUnavailable)
	assert.Zero(t, *deployment.Strategy.RollingUpdate.MaxUnavailable)
	assert.Positive(t, *deployment.Strategy.RollingUpdate.MaxSurge)
	assert.GreaterOrEqual(t, deployment.Replicas, 2)
	assert.Less(t, pdb.MinAvailable, deployment.Replicas, "or no node could be drained")
	assert.Equal(t, deployment.Selector, pdb.Selector)

	// The tables are made before, by another role, as the guide says.
	job := all["Job"].Spec.Template.Spec
	require.Len(t, job.Containers, 1)
	j := job.Containers[0]
	assert.Equal(t, [][]string{{"migrate"}, {"serve"}}, [][]string{j.Args, c.Args})
	assert.NotEqual(t, j.secret("DATABASE_URL"), c.secret("DATABASE_URL"), "the shop's role may not create tables")
	for _, variable := range []string{"GATEWAY_API_KEY", "GATEWAY_WEBHOOK_SECRETS"} {
		assert.Equal(t, c.secret(variable), j.secret(variable), "with all accounts")
	}
	assert.Equal(t, "Never", job.RestartPolicy)

	for _, p := range []pod{job, shop} {
		assert.True(t, p.SecurityContext.RunAsNonRoot)
		assert.False(t, *p.AutomountServiceAccountToken)
		is := p.Containers[0].SecurityContext
		assert.False(t, *is.AllowPrivilegeEscalation)
		assert.True(t, is.ReadOnlyRootFilesystem)
		assert.Equal(t, []string{"ALL"}, is.Capabilities.Drop)
		assert.NotEmpty(t, p.Containers[0].Resources.Limits["memory"])
	}

	// Signed and unsigned deliveries share memory for their bodies, each.
	bodies := 2 * said(t, "assumptions.md", `each group makes .* and shares (\d+) MiB for bodies`)
	limit := mib(t, c.Resources.Limits["memory"])
	assert.GreaterOrEqual(t, limit, 2*bodies)
	memory := slices.IndexFunc(c.Env, func(e variable) bool { return e.Name == "GOMEMLIMIT" })
	require.GreaterOrEqual(t, memory, 0)
	assert.Less(t, mib(t, c.Env[memory].Value), limit)
	assert.Greater(t, mib(t, c.Env[memory].Value), bodies)
}

// word returns the word that a guide has in a place.
func word(t *testing.T, guide, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + guide)
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindStringSubmatch(strings.ReplaceAll(string(text), "\n", " "))
	require.Len(t, found, 2, "%s says %s", guide, pattern)
	return found[1]
}

// What the job of the manifest does: then the shop opens as a role that may not create tables.
func TestTheJobOfTheManifestMakesTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	role, schema := "s_"+strings.ToLower(rand.Text()[:16]), w.schema()
	w.exec(`CREATE ROLE ` + role + ` LOGIN`)
	w.exec(`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + role)
	w.exec(`ALTER DEFAULT PRIVILEGES IN SCHEMA ` + schema + ` GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ` + role)
	w.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + schema + ` TO ` + role) // the shop's own
	shop, err := sql.Open("pgx", strings.Replace(w.name, "user=gateway", "user="+role, 1))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, shop.Close()) })

	cfg := w.cfg
	cfg.Location.Schema = database.Expect
	_, err = w.openOn(shop, cfg)
	require.ErrorIs(t, err, database.ErrSchema)
	require.NoError(t, migrate(t.Context(), database.Postgres(w.db), cfg))
	require.NoError(t, migrate(t.Context(), database.Postgres(w.db), cfg), "a job may be repeated")
	w.cfg = cfg
	w.m, err = w.openOn(shop, cfg)
	require.NoError(t, err)
	w.gw.Account(w.gw.Key()).Webhooks.Send(w.m.Webhook("shop"))
	w.start()
	require.NoError(t, w.gw.Transactions.Pay(w.charge(pix(w.order("A1"), 500)).TransactionID))
	w.soon("the order is paid", func() bool { return w.state("A1").Paid == 500 })
}
