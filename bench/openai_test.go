package bench_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const openaiID = "chatcmpl-AyPNinnUqUDYo9SAdA00000000"

var completion = compact(`{
	"id":"chatcmpl-AyPNinnUqUDYo9SAdA00000000","object":"chat.completion","created":1799064000,"model":"model-1",
	"choices":[{"index":0,"message":{"role":"assistant","content":"The order 2027-0117 of Maria Oliveira is paid: 154.70 by Pix at 12:03. The parcel with the coffee and the filters goes out today, and the link to the workshop on Friday evening, with the list of what to bring.",
		"refusal":null,"annotations":[],"tool_calls":[{"id":"call_0001","type":"function","function":{"name":"ship_parcel",
			"arguments":"{\"order\":\"2027-0117\",\"items\":[{\"sku\":\"CAFE-500\",\"quantity\":2},{\"sku\":\"FILTRO-103\",\"quantity\":1}]}"}},
			{"id":"call_0002","type":"function","function":{"name":"send_mail",
			"arguments":"{\"to\":\"maria.oliveira@example.com\",\"template\":\"paid\",\"reference\":\"order-2027-0117-k3x9qa\"}"}}]},
		"logprobs":{"content":[{"token":"The","logprob":-0.01,"bytes":[84,104,101],"top_logprobs":[{"token":"The","logprob":-0.01,
			"bytes":[84,104,101]},{"token":"Your","logprob":-4.61,"bytes":[89,111,117,114]}]},{"token":" order","logprob":-0.02,
			"bytes":[32,111,114,100,101,114],"top_logprobs":[{"token":" order","logprob":-0.02,"bytes":[32,111,114,100,101,114]}]},
			{"token":" is","logprob":-0.03,"bytes":[32,105,115],"top_logprobs":[]}],"refusal":null},
		"finish_reason":"tool_calls"}],
	"usage":{"prompt_tokens":219,"completion_tokens":110,"total_tokens":329,
		"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},
		"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},
	"metadata":{"order":"2027-0117","cart":"8f2c"},"service_tier":"default","system_fingerprint":"fp_50cad350e4"}`)

func openaiBackend() *backend {
	return &backend{
		one: []byte(completion),
		list: func(n int) []byte {
			return fmt.Appendf(nil, `{"object":"list","data":[%s],"has_more":%t}`, items(completion, n), n+1 < pages)
		},
		pageOf: afterPage("/chat/completions", "after"),
	}
}

func openOpenAI(n network) (calls, error) {
	client := openai.NewClient(option.WithAPIKey("sk-bench"), option.WithBaseURL(n.base),
		option.WithHTTPClient(&http.Client{Transport: n.transport}))
	return calls{
		create: func(ctx context.Context) (string, error) {
			c, err := client.Chat.Completions.New(ctx, completionParams())
			if err != nil {
				return "", err
			}
			return c.ID, nil
		},
		get: func(ctx context.Context) (string, error) {
			c, err := client.Chat.Completions.Get(ctx, openaiID)
			if err != nil {
				return "", err
			}
			return c.ID, nil
		},
		list: func(ctx context.Context) (n int, err error) {
			pager := client.Chat.Completions.ListAutoPaging(ctx, openai.ChatCompletionListParams{Limit: openai.Int(pageSize)})
			for pager.Next() {
				n += min(len(pager.Current().ID), 1)
			}
			return n, pager.Err()
		},
	}, nil
}

func completionParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "model-1",
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("You watch over the orders of a shop. Ship what is paid, write to the buyer, and say what you did."),
			openai.UserMessage("Order 2027-0117, Maria Oliveira, maria.oliveira@example.com, 11987654321, Rua das Laranjeiras, 210, apto 31, Rio de Janeiro."),
			openai.UserMessage("2 x Café em grãos, torra média, 500 g (CAFE-500) at 42.90"),
			openai.UserMessage("1 x Filtro de papel nº 103 (FILTRO-103) at 8.90"),
			openai.UserMessage("1 x Oficina de métodos de preparo (online) at 60.00"),
			openai.UserMessage("Whole beans, a gift wrap with a card, and a call before the delivery, please."),
			openai.UserMessage("Paid 154.70 by Pix at 12:03, reference order-2027-0117-k3x9qa."),
		},
		Metadata:            openai.Metadata{"order": "2027-0117", "cart": "8f2c", "campaign": "verao", "channel": "web"},
		MaxCompletionTokens: openai.Int(500),
		Temperature:         openai.Float(0.2),
		TopP:                openai.Float(0.9),
		Logprobs:            openai.Bool(true),
		Store:               openai.Bool(true),
		User:                openai.String("shop.example.com/k3x9qa"),
	}
}
