// Package exam plays the lives of orders against a merchant's program inside a Go test,
// with the mock gateway as its gateway, and enumerates what can go wrong on the way:
// lost responses, requests that arrive late, crashes, webhooks that arrive twice, late,
// together or never. At the end it compares what the program believes with what the
// gateway knows: an order that was charged twice, a payment that was lost, goods that were
// sent twice or without a payment fail the test.
//
//	func TestTheShopLosesNoMoney(t *testing.T) {
//		exam.Explore(t, func(p *exam.Process) (http.Handler, error) {
//			s, err := shop.Open(p.Dir(), p.Client(), p.Secret())
//			if err != nil {
//				return nil, err
//			}
//			p.OnExit(s.Close)
//			mux := http.NewServeMux()
//			mux.Handle("POST /webhooks", s.Webhooks())
//			mux.Handle("/exam/", exam.Hooks{Place: s.Place, Report: s.Report, Refund: s.Refund, Tick: s.Jobs})
//			return mux, nil
//		})
//	}
//
// The program runs in memory, in a bubble of testing/synctest, once for each schedule. A
// schedule says what happens to each message. The command mockgateway exam plays the same
// orders against a program in any language that runs as a process.
//
// # What a program must not do
//
//   - Behave differently in two runs with the same schedule: send requests in the order of a
//     map, or depending on chance. Explore reports that. Ids and references may be random.
//   - Keep anything outside of the folder Dir: package-level variables, and variables that
//     the start function shares with its test, survive a crash.
//   - Hold a [sync.Mutex] during a request, a sleep or a Step while another goroutine waits
//     for it: a bubble can't see that this goroutine is blocked. Explore notices that, reports
//     it, and from then on does not let messages overlap. A lock that is a channel, and the
//     locks of a database, are no problem.
//   - Leave goroutines: they must end when [Process.Context] ends or with a function of
//     [Process.OnExit].
//   - Use sockets. Webhooks are delivered to the handler in memory, and Client and Transport
//     need no network.
package exam
