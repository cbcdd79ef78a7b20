package testplane

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt is a task that a person can choose. No argument becomes part of its text: a name
// is only data.
type prompt struct{ name, title, about, text string }

func prompts() []prompt {
	return []prompt{
		{
			"debug_webhook", "Why does my program not handle a webhook?", "Finds out why a webhook did not arrive, was rejected or had no effect.",
			`Find out why the merchant's program does not handle its webhooks, and fix the program.
1. Call mock_status: is the receiver among the endpoints? If not, call mock_endpoint, and start the program with the secret in secret_file.
2. Call mock_sample with kind transaction.paid, then why_webhook with its event_id. Do what the first diagnosis says.
3. If the signature is rejected, log the headers and the exact bytes of the body in the receiver, and call diagnose_signature with them.
4. If it was delivered and nothing happened, read the handler: it must verify the bytes that arrived, store the event before it responds, and
   respond with 2xx only if it is stored. gateway://docs/webhooks describes the order.
5. Repeat with a real charge: mock_call, mock_act pay, why_webhook.`,
		},
		{
			"test_lost_response", "Write the test of a lost response", "Writes a test in which the response of a create is lost, and which asserts one charge.",
			`Write a test of the merchant's program in which the response of a create is lost, and which fails if the buyer is charged twice.
1. Inject the fault: mock_fault with fault lose-response, on transactions.create, times 1.
2. Let the program place an order. It must end in "unknown" or find the charge by itself: never in "failed".
3. Let the program try again, as its retry, its job or the buyer's second click does.
4. Assert with GET /v2/transactions, in the test itself, that exactly one transaction has the order's reference and amount.
5. Pay it with mock_act and assert that the order is paid and shipped once.
The reference must be stored with the order before the first call; a retry sends the same one. Rules: gateway://docs/agents.`,
		},
		{
			"review_integration", "Review an integration", "Reviews the merchant's code against the rules for moving money safely.",
			`Review the merchant's code against gateway://docs/agents and gateway://docs/errors. For each rule name file and line where the code keeps it or
breaks it: the reference is made and stored before the call; a retry sends the same one; an unknown outcome is never "failed"; amounts are
integers; "paid" means settled; refunds are not repeated blindly; webhooks are verified over the received bytes, deduplicated, and their effect
is committed with their completion; amounts are compared with the order; keys are not logged.
Then prove each suspicion with the mock: mock_fault, mock_call, story. If run_exam is configured, run it and explain each failure.`,
		},
	}
}

func addPrompts(s *mcp.Server) {
	for _, p := range prompts() {
		s.AddPrompt(&mcp.Prompt{Name: p.name, Title: p.title, Description: p.about},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: p.about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: p.text}}}}, nil
			})
	}
}
