// Datafile measures the mock gateway's data file: the cost of a create as the file
// grows, the size of the file, and the duration of a restart.
//
//	go run ./datafile -n 1000000
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/gateway-go/gateway/mockserver"
)

func main() {
	n := flag.Int("n", 50_000, "number of transactions")
	restart := flag.Bool("restart", false, "only restart, with the file of an earlier run")
	creates := flag.Bool("create", false, "only create transactions")
	dir := flag.String("dir", os.TempDir(), "directory of the file")
	profile := flag.String("cpuprofile", "", "file for a CPU profile")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	path := filepath.Join(*dir, "mockgateway.data")
	if !*restart {
		_ = os.Remove(path)
		fill(path, *n)
	}
	if *creates {
		return
	}
	for _, what := range []string{"restart after a kill", "second restart"} {
		start := now()
		gw := open(path)
		took := now().sub(start)
		fmt.Printf("%-22s, s: wall %6.1f user %6.1f system %6.1f  ", what, took.wall, took.user, took.system)
		report(path, *n)
		check(gw.Close())
	}
}

// fill creates n transactions and prints the time per transaction for each tenth.
func fill(path string, n int) {
	gw := open(path)
	for tenth := range 10 {
		start := now()
		for i := range n / 10 {
			create(gw.Handler(), tenth*(n/10)+i)
		}
		took := now().sub(start)
		fmt.Printf("create %9d to %9d, µs: wall %6.1f user %6.1f system %6.1f  ", tenth*(n/10), (tenth+1)*(n/10),
			took.wall*1e6/float64(n/10), took.user*1e6/float64(n/10), took.system*1e6/float64(n/10))
		report(path, (tenth+1)*(n/10))
	}
	check(gw.Close()) // leaves the file as a kill would
}

// times are in seconds. On a busy machine the CPU times are more reliable.
type times struct{ wall, user, system float64 }

func now() times {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return times{float64(time.Now().UnixNano()) / 1e9, seconds(u.Utime), seconds(u.Stime)}
}

func seconds(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }

func (t times) sub(u times) times {
	return times{t.wall - u.wall, t.user - u.user, t.system - u.system}
}

// open starts a gateway as mockgateway does.
func open(path string) *mockserver.Server {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	gw, err := mockserver.New(mockserver.WithDataFile(path), mockserver.WithMemoryLimit(16<<30))
	check(err)
	return gw
}

func create(gw http.Handler, n int) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v2/transactions", strings.NewReader(body(n)))
	r.Header.Set("Authorization", "Bearer sk_test_mock")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if gw.ServeHTTP(w, r); w.Code != http.StatusCreated {
		log.Fatalf("create %d: %d %s", n, w.Code, w.Body)
	}
}

var (
	first = []string{"Maria", "Ana", "Carlos", "Joana", "Paulo", "Beatriz", "Rafael", "Luiza", "Antonio", "Camila"}
	last  = []string{"Oliveira", "Souza", "Lima", "Pereira", "Costa", "Almeida", "Ribeiro", "Barbosa", "Nascimento", "Teixeira"}
)

func body(n int) string {
	price := 1000 + rand.IntN(9000)
	return fmt.Sprintf(order, n, 2*price+6890, first[rand.IntN(10)], last[rand.IntN(10)], rand.IntN(1e6), rand.IntN(1e8),
		10+rand.IntN(90), rand.IntN(3000), rand.IntN(1e6), price, rand.IntN(256))
}

// report prints the size of the file and the memory of the process.
func report(path string, n int) {
	info, err := os.Stat(path)
	check(err)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("file %6.0f B per transaction, heap %5d MiB, system %5d MiB\n", float64(info.Size())/float64(n), m.HeapAlloc>>20, m.Sys>>20)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// order is a Pix charge with its own buyer and cart.
const order = `{"external_ref":"order-%[1]d","amount":%[2]d,"currency":"BRL","method":"pix",` +
	`"buyer":{"name":"%[3]s %[4]s","email":"%[3]s.%[4]s.%[5]d@example.com","phone":"119%08[6]d","birth_date":"19%02[7]d-05-17",` +
	`"document":{"type":"CPF","number":"12345678909"},"address":{"street":"Rua %[4]s","number":"%[8]d",` +
	`"complement":"apto %[7]d","neighborhood":"Laranjeiras","city":"Rio de Janeiro","state":"RJ","zipCode":"22%06[9]d","country":"BR"}},` +
	`"products":[{"name":"Café em grãos, torra média, 500 g","price":%[10]d,"quantity":2,"tangible":true,"sku":"CAFE-500"},` +
	`{"name":"Filtro de papel nº 103","price":890,"quantity":1,"tangible":true,"sku":"FILTRO-103"},` +
	`{"name":"Oficina de métodos de preparo (online)","price":6000,"quantity":1}],` +
	`"metadata":"{\"order\":\"2027-%06[9]d\",\"channel\":\"web\",\"campaign\":\"verao\"}","ip_address":"203.0.113.%[11]d"}`
