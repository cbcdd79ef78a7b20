package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// programVariable makes the test binary run as the program of an exam.
const programVariable = "EXAM_TEST_PROGRAM"

// program is a merchant's program. It ends with the exit code that it returns.
func program(kind string) int {
	switch kind {
	case "exits":
		_, _ = fmt.Fprintf(os.Stderr, "no database \x1b[31mat\x1b[0m all, key %s\n", os.Getenv("GATEWAY_API_KEY"))
		return 3
	case "silent", "child": // listens, but not where it should
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil && kind == "child" {
			err = os.WriteFile(os.Getenv("EXAM_TEST_CHILD"), []byte(l.Addr().String()), 0o600)
		}
		for err == nil {
			_, err = l.Accept()
		}
		panic(err)
	case "parent", "orphan":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), programVariable+"=child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		for {
			if _, err := os.Stat(os.Getenv("EXAM_TEST_CHILD")); err == nil {
				break
			}
		}
		if kind == "orphan" {
			return 1
		}
	}
	handler := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>Welcome to my shop")
	}))
	if kind != "html" {
		key, secret := os.Getenv("GATEWAY_API_KEY"), os.Getenv("GATEWAY_WEBHOOK_SECRET")
		fmt.Println("starting with", key, "and", secret)
		handler = newTestShop(kind, os.Getenv("GATEWAY_BASE_URL"), key, secret)
	}
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), handler); err != nil {
		panic(err)
	}
	return 0
}

// testShop keeps its orders in memory, so it can't survive a crash.
type testShop struct {
	kind   string
	client *gateway.Client

	mu     sync.Mutex
	orders map[string]*testOrder
}

type testOrder struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Paid     int64  `json:"paid"`
	Refunded int64  `json:"refunded"`
	Shipped  int    `json:"shipped"`

	amount int64
}

func newTestShop(kind, base, key, secret string) http.Handler {
	client, err := gateway.New(base, gateway.APIKey(key))
	if err != nil {
		panic(err)
	}
	s := &testShop{kind: kind, client: client, orders: map[string]*testOrder{}}
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gateway.NewSecret(secret)}}})
	if err != nil {
		panic(err)
	}
	webhook.Ignore(rx, webhook.TransactionCreated, webhook.TransactionPending)
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		s.paid(e.CorrelationID)
		return nil
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exam/orders", s.place)
	mux.HandleFunc("GET /exam/orders/{id}", s.report)
	mux.Handle("POST /webhooks", rx)
	if kind == "ships-again" {
		mux.HandleFunc("POST /hooks/gateway", s.again)
	}
	return mux
}

func (s *testShop) place(w http.ResponseWriter, r *http.Request) {
	var order struct {
		ID     string              `json:"id"`
		Amount int64               `json:"amount"`
		Method gateway.Method      `json:"method"`
		Buyer  gateway.BuyerParams `json:"buyer"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.orders[order.ID] = &testOrder{ID: order.ID, Status: "pending", amount: order.Amount}
	s.mu.Unlock()
	_, err := s.client.Transactions.Create(r.Context(), gateway.TransactionParams{
		ExternalRef: order.ID, Amount: order.Amount, Method: order.Method, Buyer: order.Buyer, Products: []gateway.Product{{Name: "Book", Price: order.Amount}},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusAccepted)
		return
	}
	if s.kind == "flood" {
		ctx := context.WithoutCancel(r.Context())
		go func() {
			for range time.Tick(10 * time.Millisecond) {
				_, _ = s.client.Transactions.List(ctx, gateway.TransactionListParams{})
			}
		}()
		go func() {
			for range time.Tick(10 * time.Millisecond) {
				_, _ = s.client.Customers.Create(ctx, gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
			}
		}()
	}
	w.WriteHeader(http.StatusCreated)
}

func (s *testShop) report(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := s.orders[r.PathValue("id")]
	if order == nil {
		http.NotFound(w, r)
		return
	}
	if err := json.NewEncoder(w).Encode(order); err != nil {
		panic(err)
	}
}

func (s *testShop) paid(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order := s.orders[id]; order != nil {
		order.Status, order.Paid = "paid", order.amount
		order.Shipped++
	}
}

// again ships at each delivery of a paid event, and reads at each event.
func (s *testShop) again(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if _, err := s.client.Transactions.List(r.Context(), gateway.TransactionListParams{}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if e, err := webhook.Parse(body); err == nil && e.Kind == webhook.TransactionPaid {
		s.paid(e.CorrelationID)
	}
	w.WriteHeader(http.StatusOK)
}
