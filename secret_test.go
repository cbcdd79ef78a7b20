package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/legacy"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

const modulePath = "github.com/gateway-go/gateway"

// exportedTypes returns every exported type of the packages that merchants
// import. It finds them through the fields and methods of the roots below.
func exportedTypes(t *testing.T) []reflect.Type {
	t.Helper()
	found := reachable(
		gateway.New, gateway.OperationFromContext, gateway.Observer{}, gateway.WithGate, gateway.ResponseInto, gateway.Error{}, gateway.OutcomeError{},
		gateway.ValidationError{},
		legacy.New, mockserver.Run, mockserver.WithDialect, mockserver.WithProduction, mockserver.ControlError{},
		webhook.New, webhook.NewReconciler, webhook.NewMemoryStore, webhook.ClaimFromContext, webhook.OnTransaction,
		webhook.Verifier{}, webhook.ErrMissingSignature, webhooktest.Run, webhooktest.Every,
	)
	names := map[string]bool{}
	for _, typ := range found {
		name, _, _ := strings.Cut(typ.Name(), "[")
		names[typ.PkgPath()+"."+name] = true
	}
	for _, dir := range []string{".", "legacy", "mockserver", "webhook", "webhook/webhooktest"} {
		for _, name := range exportedTypeNames(t, dir) {
			full := strings.TrimSuffix(modulePath+"/"+dir, "/.") + "." + name
			assert.True(t, names[full], "%s is not reachable: add a root for it to exportedTypes", full)
		}
	}
	return found
}

func exportedTypeNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			group, _ := decl.(*ast.GenDecl)
			if group == nil || group.Tok != token.TYPE {
				continue
			}
			for _, s := range group.Specs {
				if s := s.(*ast.TypeSpec); s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

// reachable returns the exported types of this module that can be reached from the
// types of roots.
func reachable(roots ...any) (found []reflect.Type) {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		ours := strings.HasPrefix(typ.PkgPath(), modulePath) && !strings.Contains(typ.PkgPath(), "/internal/")
		if ours && token.IsExported(typ.Name()) {
			found = append(found, typ)
		}
		switch typ.Kind() { //nolint:exhaustive // other kinds refer to no other type
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			visit(typ.Elem())
		case reflect.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case reflect.Func:
			for in := range typ.Ins() {
				visit(in)
			}
			for out := range typ.Outs() {
				visit(out)
			}
		case reflect.Struct:
			for f := range typ.Fields() {
				if ours && f.IsExported() {
					visit(f.Type)
				}
			}
		}
		if ours {
			for m := range typ.Methods() {
				visit(m.Type)
			}
			if typ.Kind() != reflect.Interface {
				for m := range reflect.PointerTo(typ).Methods() {
					visit(m.Type)
				}
			}
		}
	}
	for _, root := range roots {
		visit(reflect.TypeOf(root))
	}
	return found
}

// The secrets that fill sets. fmt does not call methods on unexported fields,
// so card tokens and documents, which are strings, are hidden only in exported
// fields.
const (
	printedSecret = "printedsecret"
	printedClient = "printedclient"
	printedMasked = "printedmasked"
)

// fill sets every field of v that can contain a secret.
func fill(v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *gateway.Secret:
		*at = gateway.NewSecret(printedSecret)
		return
	case *gateway.ClientSecret:
		*at = gateway.NewClientSecret(printedClient)
		return
	case *gateway.Credential:
		*at = gateway.BasicToken(printedSecret)
		return
	case *gateway.CardToken:
		*at = "pgct_" + printedMasked
		return
	case *gateway.Document:
		*at = gateway.Document{Type: gateway.CPF, Number: printedMasked}
		return
	case *gateway.PixKey:
		*at = printedMasked
		return
	case *gateway.Metadata:
		*at = gateway.MetadataText(`{"email":"` + printedMasked + `@mail.example"}`)
		return
	case *[]byte: // a body
		*at = []byte(`{"data":{"customer":{"email":"` + printedMasked + `"},"document":"` + printedMasked + `"}}`)
		return
	case *json.RawMessage: // a Raw, with members that this version does not know
		*at = json.RawMessage(`{"nickname":"` + printedMasked + `"}`)
		return
	}
	switch v.Kind() { //nolint:exhaustive // other kinds contain no secret
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for name, field := range v.Fields() {
			if field.CanSet() {
				fill(field, depth-1)
			}
			if field.CanSet() && field.Kind() == reflect.String && personalFields.MatchString(name.Name) {
				field.SetString(printedMasked)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(gateway.NewSecret(printedSecret)))
		}
	}
}

// personalFields matches the fields for e-mail addresses, phone numbers and documents
// that are ordinary strings.
var personalFields = regexp.MustCompile(`Mail$|Email$|^Phone$|^BirthDate$|^Document$|^DocumentNumber$`)

// logged returns v inside exported types that a merchant might log.
func logged(v any) []any {
	type outer struct {
		V    any
		List []any
		Map  map[string]any
		Err  error `json:",omitempty"`
	}
	if v == nil { // of an interface type
		return []any{v, &v}
	}
	err, _ := v.(error)
	o := outer{v, []any{v, &v}, map[string]any{"v": v}, err}
	typed := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 0, 1)
	return []any{v, &v, o, &o, []any{o}, map[string]any{"o": o}, reflect.Append(typed, reflect.ValueOf(v)).Interface()}
}

// assertLogged checks a value in every place of a log record, with both handlers.
func assertLogged(t *testing.T, v any) {
	t.Helper()
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		for _, value := range logged(v) {
			log.InfoContext(t.Context(), "x", slog.Any("v", value), slog.Group("g", slog.Any("v", value), slog.Group("h", slog.Any("v", value))))
			log.With(slog.Any("v", value)).WithGroup("g").InfoContext(t.Context(), "x", slog.Any("err", fmt.Errorf("wrapped: %v", value)))
		}
	}
	assertAbsent(t, out.String(), fmt.Sprintf("%T in a log", v), printedSecret, printedClient, printedMasked)
	assert.NotContains(t, out.String(), `panic`, "%T", v)
	for _, value := range logged(v)[2:] {
		assertHidden(t, value, printedMasked)
	}
}

// callers returns v inside types that a merchant might log.
func callers(v any) []any {
	type inner struct{ v any }
	type outer struct {
		inner

		list []any
		m    map[string]any
	}
	type secrets struct {
		s gateway.Secret
		c gateway.ClientSecret
		p *gateway.Secret
		l []gateway.Secret
		m map[gateway.Secret]gateway.ClientSecret
		k gateway.Credential
	}
	s, c := gateway.NewSecret(printedSecret), gateway.NewClientSecret(printedClient)
	all := secrets{s, c, &s, []gateway.Secret{s}, map[gateway.Secret]gateway.ClientSecret{s: c}, gateway.APIKey(printedSecret)}
	nested := outer{inner{v}, []any{v, &v}, map[string]any{"v": v}}
	return []any{inner{v}, &inner{v}, nested, &nested, all, &all, struct{ s secrets }{all}, []any{all}}
}

// Developers may print any value while debugging. New types are covered
// automatically.
func TestNoVerbShowsASecret(t *testing.T) {
	t.Parallel()
	for _, typ := range exportedTypes(t) {
		pointer := reflect.New(typ)
		fill(pointer.Elem(), 8)
		for _, v := range []any{pointer.Elem().Interface(), pointer.Interface()} {
			assertHidden(t, v, printedSecret, printedClient, printedMasked)
			assertLogged(t, v)
			for _, mine := range callers(v) {
				assertHidden(t, mine, printedSecret, printedClient)
			}
			assertHiddenInJSON(t, v)
		}
		// The output of a failed test in a merchant's code.
		var diff strings.Builder
		assert.Equal(recorder{&diff}, pointer.Elem().Interface(), reflect.Zero(typ).Interface())
		assert.Equal(recorder{&diff}, callers(pointer.Elem().Interface()), callers(nil))
		assertAbsent(t, diff.String(), "testify's diff of "+typ.String(), printedSecret, printedClient)
	}
}

// recorder stands in for a merchant's *testing.T.
type recorder struct{ out *strings.Builder }

func (r recorder) Errorf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

// These values have a secret in fields that fill can't reach.
func TestNoVerbShowsASecretOfALiveValue(t *testing.T) {
	t.Parallel()
	const key, path = "sk_test_" + printedSecret, "path-" + printedSecret
	secret := gateway.NewSecret("whsec_" + printedSecret)
	gw := mockserver.Run(t, mockserver.WithWebhookSecret(secret), mockserver.WithEndpoint("https://shop.test/hook", secret))
	client, err := gateway.New("https://api.test", gateway.BearerToken(key))
	require.NoError(t, err)
	account := gw.Account(key)
	config := webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}, SecretPath: gateway.NewSecret(path), API: client}
	receiver, err := webhook.New(config)
	require.NoError(t, err)
	v1, err := legacy.New(client, gateway.NewSecret(key))
	require.NoError(t, err)
	for _, v := range []any{
		client, *client, gw, account, *account, account.Transactions, account.Transfers, account.Subscriptions, account.Checkout,
		account.Legacy, account.Webhooks, account.Faults, account.Requests, gw.Webhooks, gw.Webhooks.Endpoints(), v1,
		config, receiver, &webhook.Verifier{Keys: config.Keys},
		gateway.WithCredential(gateway.APIKey(key)), gateway.UseCredential(gateway.APIKey(key)),
	} {
		assertHidden(t, v, printedSecret)
		assertHidden(t, &v, printedSecret)
		for _, mine := range callers(v) {
			assertHidden(t, mine, printedSecret, printedClient)
		}
		assertHiddenInJSON(t, v)
	}
}

func assertHidden(t *testing.T, v any, secrets ...string) {
	t.Helper()
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		fmt.Fprintf(&out, verb, v)
	}
	slog.New(slog.NewTextHandler(&out, nil)).LogAttrs(t.Context(), slog.LevelInfo, "x", slog.Any("v", v))
	assertAbsent(t, out.String(), fmt.Sprintf("%T", v), secrets...)
}

// Only challenges and card tokens appear in JSON; other secrets never do.
func assertHiddenInJSON(t *testing.T, v any) {
	t.Helper()
	text, _ := json.Marshal(v) //nolint:errchkjson // an error shows nothing either
	assertAbsent(t, string(text), fmt.Sprintf("%T as JSON", v), printedSecret)
}

func assertAbsent(t *testing.T, text, where string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		basic := base64.StdEncoding.EncodeToString([]byte(secret[:12]))
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret), basic} {
			assert.NotContains(t, text, form, where)
		}
	}
	assert.NotContains(t, text, "PANIC", where)
}

func TestSecretsCompareByValue(t *testing.T) {
	t.Parallel()
	a, b := gateway.NewSecret("a"), gateway.NewSecret(strings.Clone("a"))
	assert.Equal(t, a, b)
	assert.Contains(t, map[gateway.Secret]bool{a: true}, b)
	assert.NotEqual(t, a, gateway.NewSecret("b"))
	assert.Equal(t, "a", a.Reveal())
	assert.Equal(t, "[redacted]", a.String())
	assert.True(t, gateway.NewSecret("").IsZero())
	assert.Equal(t, gateway.Secret{}, gateway.NewSecret(""))
	assert.Empty(t, gateway.Secret{}.Reveal())
	assert.Empty(t, gateway.Secret{}.String())
}

func TestSecretsInJSON(t *testing.T) {
	t.Parallel()
	type both struct {
		Token  gateway.Secret       `json:"token,omitzero"`
		Client gateway.ClientSecret `json:"client"`
	}
	for in, want := range map[string]string{
		`{"token":"a\"b","client":"c<d"}`: `{"token":"[redacted]","client":"c<d"}`,
		`{"token":null,"client":null}`:    `{"client":null}`,
		`{"token":"","client":""}`:        `{"client":null}`,
		`{"token":17,"client":18}`:        `{"token":"[redacted]","client":"18"}`,
	} {
		var v both
		require.NoError(t, json.Unmarshal([]byte(in), &v))
		out, err := json.Marshal(v)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(out))
	}
	var s gateway.Secret
	require.NoError(t, s.UnmarshalText([]byte("from a configuration file")))
	assert.Equal(t, "from a configuration file", s.Reveal())
}
